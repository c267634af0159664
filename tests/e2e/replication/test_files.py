"""Files of replicated images: of any size, spooled once, sent once to each member, gone when all have them."""
import http.client

import pytest

import files_lab
from files_lab import ask, digest, content, download, upload, wait_for, when
import mesh_maker

MB = 1 << 20


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = files_lab.Lab(tmp_path_factory.mktemp("files"))
    yield made
    made.stop()


def make_image(lab, name, scope=None):
    answer = ask(lab[1].front + "/images", "POST", {"Scope": scope or lab.all}, json_body={"name": name})
    assert answer.status == 201, answer
    return f"/images/{answer.json['id']}/file"


def wait_file(site, path, expected):
    def is_there():
        return download(site.front + path) == (200, expected)
    wait_for(is_there, f"{path} at {site.name}: {site.log()}")


def wait_everywhere(lab, path, expected):
    for site in lab.sites:
        wait_file(site, path, expected)


@pytest.mark.parametrize("size, chunked", [(0, False), (1000, False), (65536, False), (65537, True), (MB, False), (MB, True),
                                           (50 * MB, False)])
def test_a_file_reaches_every_member(lab, size, chunked):
    path = make_image(lab, f"of {size}")
    answer = upload(lab[1].front + path, size, "one", chunked)
    assert answer.status == 200 and answer.json["size"] == size, answer
    assert "Site1=200" in answer.header("Cheops-Replicas")
    if size > 0:
        wait_everywhere(lab, path, digest(content(size, "one")))
    lab.wait_no_blobs()


def test_from_a_site_that_is_no_member(lab):
    answer = ask(lab[1].front + "/images", "POST", {"Scope": "Site2 & Site3"}, json_body={"name": "elsewhere"})
    path = f"/images/{answer.json['id']}/file"
    answer = upload(lab[1].front + path, 5 * MB, "afar", headers={"Scope": "Site2 & Site3"})
    assert answer.status == 200, answer
    for site in (lab[2], lab[3]):
        wait_file(site, path, digest(content(5 * MB, "afar")))
    lab.wait_no_blobs()


def test_what_is_read_may_be_long_as_well(lab):
    """A body with ids in it is not spooled as it comes: it travels as a file all the same."""
    before = lab[1].metric("cheops_blob_bytes_sent_total")
    notes = "x" * 200000
    answer = ask(lab[1].front + "/images", "POST", {"Scope": lab.all}, json_body={"name": "wordy", "notes": notes})
    assert answer.status == 201, answer
    path = f"/images/{answer.json['id']}"
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path).status == 200, f"{path} at {site.name}")
        assert ask(site.front + path).json["name"] == "wordy"
    assert lab[1].metric("cheops_blob_bytes_sent_total") - before > 2 * len(notes)
    lab.wait_no_blobs()
    answer = ask(lab[1].front + path, "PATCH", json_body={"notes": "x" * (5 * MB)})
    assert answer.status == 413 and answer.problem["type"] == "body-too-long", answer


def test_memory_does_not_follow_the_size(lab):
    size = 200 * MB
    path = make_image(lab, "huge")
    assert upload(lab[1].front + path, size, "huge").status == 200
    wait_everywhere(lab, path, digest(content(size, "huge")))
    lab.wait_no_blobs()
    for site in lab.sites:  # the sanitizers keep what was freed
        assert files_lab.IS_SANITIZED or site.peak_bytes() < 40 * MB, (site.name, site.peak_bytes())


def test_the_same_content_is_stored_and_sent_once(lab):
    """Two images get the same file while a member is away: it is there once, and goes over once."""
    size = 20 * MB
    paths = [make_image(lab, f"twin {i}", "Site1 & Site2") for i in range(2)]
    for path in paths:
        wait_for(lambda path=path: ask(lab[2].front + path[:-5]).status == 200, f"{path} at Site2")
    before = lab[1].metric("cheops_blob_bytes_sent_total")
    lab[2].pause()
    try:
        for path in paths:
            assert upload(lab[1].front + path, size, "twins").status == 200
        assert list(lab[1].blobs().values()) == [size]
        assert list(lab[1].blobs()) == [digest(content(size, "twins"))]
    finally:
        lab[2].go_on()
    for path in paths:
        wait_file(lab[2], path, digest(content(size, "twins")))
    lab.wait_no_blobs()
    assert lab[1].metric("cheops_blob_bytes_sent_total") - before == size


def test_a_member_that_was_away_gets_it_later(lab):
    path = make_image(lab, "patient")
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path[:-5]).status == 200, f"{path} at {site.name}")
    lab[3].kill()
    assert upload(lab[1].front + path, 10 * MB, "later").status == 200
    wait_file(lab[2], path, digest(content(10 * MB, "later")))
    assert list(lab[1].blobs().values()) == [10 * MB]
    lab[3].start()
    wait_file(lab[3], path, digest(content(10 * MB, "later")))
    lab.wait_no_blobs()


def test_another_member_gives_it_when_the_first_is_gone(lab):
    path = make_image(lab, "relayed")
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path[:-5]).status == 200, f"{path} at {site.name}")
    lab[3].kill()
    assert upload(lab[1].front + path, 10 * MB, "relayed").status == 200
    wait_file(lab[2], path, digest(content(10 * MB, "relayed")))
    lab[1].kill()
    lab[3].start()
    try:
        wait_file(lab[3], path, digest(content(10 * MB, "relayed")))
    finally:
        lab[1].start()
    lab.wait_no_blobs()


def test_a_transfer_that_broke_off_goes_on(lab):
    """The receiving agent is killed in the middle, and started again: what had come does not come once more."""
    size, enough = 200 * MB, 64 * MB
    path = make_image(lab, "interrupted", "Site1 & Site2")
    wait_for(lambda: ask(lab[2].front + path[:-5]).status == 200, f"{path} at Site2")
    before = lab[1].metric("cheops_blob_bytes_sent_total")
    name = digest(content(size, "interrupted"))
    lab[2].limit_files(size - MB)  # so that it does not come to its end before we interrupt it, however late that is
    assert upload(lab[1].front + path, size, "interrupted").status == 200
    when(lambda: lab[2].blobs().get(f"{name}.part", 0) >= enough, "a part of it at Site2")
    lab[1].pause()
    lab[2].kill()
    kept = lab[2].blobs()[f"{name}.part"]
    lab[1].go_on()
    lab[2].start()
    wait_file(lab[2], path, name)
    sent = lab[1].metric("cheops_blob_bytes_sent_total") - before
    # What was on its way when the agent died is lost, and comes again; what had arrived does not.
    assert kept >= enough and size <= sent < size + enough, (kept, sent)
    lab.wait_no_blobs()


def test_what_came_wrong_is_not_used(lab):
    """A part that was damaged meanwhile: the hash tells, and it is fetched again."""
    size = 30 * MB
    path = make_image(lab, "damaged", "Site1 & Site2")
    wait_for(lambda: ask(lab[2].front + path[:-5]).status == 200, f"{path} at Site2")
    name = digest(content(size, "damaged"))
    lab[2].limit_files(8 * MB)  # so that a part stays
    assert upload(lab[1].front + path, size, "damaged").status == 200
    wait_for(lambda: lab[2].blobs().get(f"{name}.part", 0) == 8 * MB, "a part of it at Site2")
    lab[2].kill()
    with open(lab[2].folder / "state" / "store" / "blobs" / f"{name}.part", "r+b") as part:
        part.seek(3 * MB)
        part.write(b"damaged")
    lab[2].start()
    wait_file(lab[2], path, name)
    assert "what came has another hash" in lab[2].log()
    lab.wait_no_blobs()


def test_at_its_start_an_agent_removes_what_nobody_needs(lab):
    name = digest(content(MB, "orphan"))
    lab.wait_no_blobs()
    lab[2].kill()
    for each in (f"{name}.part", "upload-7", name):
        (lab[2].folder / "state" / "store" / "blobs" / each).write_bytes(b"x")
    lab[2].start()
    assert not lab[2].blobs()


def test_a_client_that_goes_away_leaves_no_trace(lab):
    path = make_image(lab, "abandoned")
    requests = lab[1].metric("cheops_operations_total")
    connection = files_lab.leave_in_the_middle(lab[1].front + path, 10 * MB, 5 * MB)
    wait_for(lab[1].blobs, "a file at Site1")
    connection.close()
    wait_for(lambda: not lab[1].blobs(), "the file to be gone")
    assert lab[1].metric("cheops_operations_total") == requests
    assert download(lab[1].front + path)[0] == 204


def test_a_full_disk_is_told_and_nothing_is_done(lab):
    path = make_image(lab, "too much")
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path[:-5]).status == 200, f"{path} at {site.name}")
    lab.wait_no_blobs()
    lab[1].limit_files(8 * MB)
    try:
        for chunked in (False, True):
            answer = refused_upload(lab[1].front + path, 20 * MB, chunked)
            assert answer.status == 507 and answer.problem["type"] == "store-full", answer
        assert not lab[1].blobs()
        # Whatever is short enough goes on.
        assert upload(lab[1].front + path, MB, "small").status == 200
        wait_everywhere(lab, path, digest(content(MB, "small")))
    finally:
        lab[1].limit_files(-1)
    assert upload(lab[1].front + path, 20 * MB, "full").status == 200
    wait_everywhere(lab, path, digest(content(20 * MB, "full")))
    lab.wait_no_blobs()


def refused_upload(url, size, chunked):
    """The answer may come before all was sent; then the rest is of no use."""
    try:
        return upload(url, size, "full", chunked)
    except (BrokenPipeError, ConnectionResetError, http.client.HTTPException) as error:
        raise AssertionError("the refusal was not heard") from error


def test_a_full_disk_at_another_member_delays_it_there(lab):
    path = make_image(lab, "later there")
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path[:-5]).status == 200, f"{path} at {site.name}")
    lab[2].limit_files(8 * MB)
    try:
        assert upload(lab[1].front + path, 20 * MB, "there").status == 200
        wait_file(lab[3], path, digest(content(20 * MB, "there")))
        wait_for(lambda: "File too large" in lab[2].log(), "Site2 to complain")
    finally:
        lab[2].limit_files(-1)
    wait_file(lab[2], path, digest(content(20 * MB, "there")))
    lab.wait_no_blobs()


def test_only_members_are_given_it(lab):
    path = make_image(lab, "ours", "Site1 & Site2")
    wait_for(lambda: ask(lab[2].front + path[:-5]).status == 200, f"{path} at Site2")
    name = digest(content(3 * MB, "ours"))
    lab[2].kill()
    try:
        assert upload(lab[1].front + path, 3 * MB, "ours").status == 200
        target = f"/cheops/v1/blobs/{name}"

        def ask_as(site, range_=None, target=target):
            headers = {"Range": range_} if range_ else {}
            return mesh_maker.ask_peer(lab[1].config["peer"], site.config["state"], "GET", target, headers)

        whole = b"".join(content(3 * MB, "ours"))
        assert ask_as(lab[2])[::2] == (200, whole)
        status, headers, body = ask_as(lab[2], f"bytes={MB + 7}-")
        assert status == 206 and body == whole[MB + 7:]
        assert dict(headers)["Content-Range"] == f"bytes {MB + 7}-{3 * MB - 1}/{3 * MB}"
        assert ask_as(lab[2], f"bytes={3 * MB}-")[0] == 416
        for site, where in ((lab[3], target), (lab[2], target[:-1] + "g"), (lab[2], target + "0"), (lab[2], target[:-64])):
            status, _, body = ask_as(site, target=where)
            assert status == 404, (site.name, where, body)
        # Nor anybody on the API's own port.
        assert ask(f"http://{lab[1].config['api']}{target}").status == 404
    finally:
        lab[2].start()
    wait_file(lab[2], path, name)
    lab.wait_no_blobs()
