"""Long bodies of what is `weak`: run here, told to the others once, with the body; nothing is tried again."""
import pytest

import files_lab
from files_lab import ask, content, digest, download, upload, wait_for
from test_file_repair import MB


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = files_lab.Lab(tmp_path_factory.mktemp("weak"))
    yield made
    made.stop()


def there(site, name):
    """What the service of the site has of that name."""
    return [each for each in ask(site.own + "/images").json["images"] if each["name"] == name]


def file_at(site, name):
    found = there(site, name)
    status, value = download(f"{site.own}/images/{found[0]['id']}/file") if found else (404, None)
    return value if status == 200 else None


def make(lab, name, **members):
    answer = ask(lab[1].front + "/images", "POST", {"Scope": f"weak({lab.all})"}, json_body={"name": name, **members})
    assert answer.status == 201, answer
    path = f"/images/{answer.json['id']}"
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path).status == 200, f"{name} at {site.name}")
        assert len(there(site, name)) == 1
    return path


def test_a_file_is_uploaded_everywhere(lab):
    size = 5 * MB
    path = make(lab, "weak")
    assert upload(lab[2].front + path + "/file", size, "weak").status == 200
    assert file_at(lab[2], "weak") == digest(content(size, "weak"))
    for site in lab.sites:
        wait_for(lambda site=site: file_at(site, "weak") == digest(content(size, "weak")), f"the file at {site.name}")
    # Who was told needs it no more; who told them keeps it for a while, in this life only.
    for site in (lab[1], lab[3]):
        wait_for(lambda site=site: not site.blobs(), f"{site.name} to have no body left")
    assert list(lab[2].blobs()) == [digest(content(size, "weak"))]
    lab[2].kill()
    lab[2].start()
    wait_for(lambda: not lab[2].blobs(), "the body to be dropped")
    files_lab.mesh_maker.wait_reachable(lab.sites)


def test_a_long_create(lab):
    notes = "x" * 300000
    make(lab, "weak and wordy", notes=notes)
    assert [there(site, "weak and wordy")[0]["notes"] for site in lab.sites] == [notes] * 3


def test_what_the_service_refuses_goes_nowhere(lab):
    path = make(lab, "refused")
    assert upload(lab[1].front + path + "/nothing", 2 * MB, "refused").status in (404, 405)
    assert upload(lab[1].front + "/images/none/file", 2 * MB, "refused").status == 404
    assert digest(content(2 * MB, "refused")) not in [*lab[1].blobs(), *lab[2].blobs(), *lab[3].blobs()]


def test_who_is_away_is_not_told_again(lab):
    size = 2 * MB
    path = make(lab, "missed")
    lab[3].kill()
    assert upload(lab[1].front + path + "/file", size, "missed").status == 200
    wait_for(lambda: file_at(lab[2], "missed") == digest(content(size, "missed")), "the file at Site2")
    lab[3].start()
    files_lab.mesh_maker.wait_reachable(lab.sites)

    def hears():
        assert ask(lab[1].front + path, "PATCH", json_body={"heard": True}).status == 200
        return there(lab[3], "missed")[0].get("heard")
    wait_for(hears, "Site3 to hear of what comes later")
    assert file_at(lab[3], "missed") is None and not lab[3].blobs()
