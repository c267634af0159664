"""A new member gets the files of a resource as well: read once at the site that gives its copy, sent once, whatever goes on meanwhile."""
import subprocess
import threading

import pytest

import demo_process
import files_lab
from files_lab import ask, content, digest, download, upload, wait_for, when
from test_file_repair import MB, SAME, Image, run


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = files_lab.Lab(tmp_path_factory.mktemp("newcomers"))
    yield made
    made.stop()


class Pair(Image):
    """An image of Site1 and Site2, which Site3 is to have as well."""

    def __init__(self, lab, name, size=None, **members):
        super().__init__(lab, name, scope="Site1 & Site2", **members)
        if size is not None:
            assert upload(lab[1].front + self.path, size, name).status == 200
            wait_for(lambda: download(self.own(2) + "/file") == (200, digest(content(size, name))), "the file at Site2")
        self.wait_forgotten()
        lab.wait_no_blobs()  # nobody has the file but the services

    def wait_forgotten(self):
        wait_for(lambda: self.api(1).json["operations"] == 0, "the operations to be forgotten")

    def extend(self, *options, at=1, status=0):
        done = run(self.lab[at], "replicant", "extend", self.id, "Site3", *options)
        assert done.returncode == status, done
        return done

    def extending(self, at=1):
        return subprocess.Popen([files_lab.CHEOPS, "replicant", "extend", self.id, "Site3", "--api", self.lab[at].config["api"]],
                                env=demo_process.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def is_extended(self):
        return any(each["site"] == "Site3" and not each["joining"] and each["state"] == "settled" for each in self.members())

    def there(self):
        """What the service of the new site has of that name."""
        return [each for each in ask(self.lab[3].own + "/images").json["images"] if each["name"] == self.name]

    def wait_extended(self, value):
        wait_for(self.is_extended, f"Site3 to be a member: {self.members()}")
        self.wait_same(value)
        assert len(self.there()) == 1
        assert self.words() == SAME
        self.lab.wait_no_blobs()


def test_a_new_member_gets_the_file(lab):
    image = Pair(lab, "grows", 3 * MB, colour="red")
    before = [site.metric("cheops_blob_bytes_sent_total") for site in lab.sites]
    shown = image.extend("--wait")
    assert "settled" in shown.stdout
    image.wait_extended(digest(content(3 * MB, "grows")))
    assert image.there()[0]["colour"] == "red"
    # From who gave it to who is new, and to nobody else.
    sent = [site.metric("cheops_blob_bytes_sent_total") - earlier for site, earlier in zip(lab.sites, before)]
    assert sent == [3 * MB, 0, 0]
    # A member like any other.
    assert upload(lab[3].front + image.path, 2 * MB, "from there").status == 200
    image.wait_same(digest(content(2 * MB, "from there")))
    assert ask(lab[2].front + image.path[:-5], "PATCH", json_body={"colour": "blue"}).status == 200
    wait_for(lambda: image.there()[0]["colour"] == "blue", "the change at Site3")
    assert ask(lab[3].front + image.path[:-5], "DELETE").status == 204
    wait_for(lambda: not image.there() and ask(lab[1].front + image.path[:-5]).status in (404, 410), "it to be gone")
    lab.wait_no_blobs()


def test_without_a_file_and_with_a_short_or_empty_one(lab):
    bare = Pair(lab, "bare")
    bare.extend("--wait")
    bare.wait_extended(None)
    for name, size in (("empty", 0), ("short", 10)):
        image = Pair(lab, name, size)
        image.extend("--wait", at=2)
        image.wait_extended(digest(content(size, name)))


def test_a_long_state_is_copied_too(lab):
    """More than what an operation can carry, with a file; and more than what can be looked into at all."""
    notes = "x" * 300000
    image = Pair(lab, "wordy", MB, notes=notes)
    image.extend("--wait")
    image.wait_extended(digest(content(MB, "wordy")))
    assert image.there()[0]["notes"] == notes
    other = Pair(lab, "too wordy")
    for part in range(6):
        assert ask(other.own(1), "PATCH", json_body={f"notes{part}": "x" * 900000}).status == 200
    refused = other.extend(status=1)
    assert "at most 4194304" in refused.stderr and not other.there()
    assert {each["site"] for each in other.members()} == {"Site1", "Site2"}
    lab.wait_no_blobs()


def test_the_file_of_a_move(lab):
    """Who gave the copy goes right behind: not before the new site has the file."""
    image = Pair(lab, "moves", 30 * MB)
    image.extend()
    assert run(lab[2], "replicant", "drop", image.id, "Site1", "--wait").returncode == 0
    wait_for(lambda: {each["site"]: each["state"] for each in image.members(2)} == {"Site2": "settled", "Site3": "settled"},
             "the two that stay")
    local = image.there()[0]["id"]
    assert download(f"{lab[3].own}/images/{local}/file") == (200, digest(content(30 * MB, "moves")))
    lab.wait_no_blobs()


def test_changes_and_uploads_go_on_meanwhile(lab):
    """Users of the other member upload and change; the last upload that was acknowledged is everywhere in the end."""
    size = 4 * MB
    image = Pair(lab, "busy", 24 * MB)
    over, uploaded, patched = threading.Event(), [], []

    def use():
        while not over.is_set() or len(uploaded) < 3:
            seed = f"busy {len(uploaded)}"
            if upload(lab[2].front + image.path, size, seed).status == 200:
                uploaded.append(seed)

    def patch():
        while not over.is_set():
            answer = ask(lab[2].front + image.path[:-5], "PATCH", json_body={f"note{len(patched)}": len(patched)})
            if answer.status == 200:
                patched.append(len(patched))

    users = [threading.Thread(target=each) for each in (use, patch)]
    for each in users:
        each.start()
    try:
        wait_for(lambda: uploaded, "a first upload")
        asked = image.extending()
        assert asked.wait(4 * demo_process.BOUND_S) == 0, "what is changed again and again is extended all the same"
        wait_for(lambda: any(each["site"] == "Site3" and not each["joining"] for each in image.members()), "Site3 to have its copy")
        at_the_new_one = ask(lab[3].front + image.path[:-5], "PATCH", json_body={"from": "Site3"})
        assert at_the_new_one.status == 200, at_the_new_one
    finally:
        over.set()
        for each in users:
            each.join()
    image.wait_extended(digest(content(size, uploaded[-1])))
    for site in (1, 2, 3):
        shown = ask(image.own(site)).json
        assert [shown.get(f"note{i}") for i in patched] == patched and shown["from"] == "Site3"


def test_a_hundred_megabytes_come_once_through_kills_of_either(lab):
    """The new member dies while the file comes, and then the one that gives it: it goes on where it was."""
    size, enough = 100 * MB, 24 * MB
    image = Pair(lab, "large", size)
    name = digest(content(size, "large"))
    before = lab[1].metric("cheops_blob_bytes_sent_total")
    lab[3].limit_files(size - MB)  # so that it does not come to its end before we interrupt it, however late that is
    assert image.extending().wait(4 * demo_process.BOUND_S) == 0
    when(lambda: lab[3].blobs().get(f"{name}.part", 0) >= enough, "a part of it at Site3")
    lab[1].pause()
    assert not image_is_writable(lab, image)
    lab[3].kill()
    kept = lab[3].blobs()[f"{name}.part"]
    lab[1].go_on()
    sent = lab[1].metric("cheops_blob_bytes_sent_total") - before
    lab[3].start()
    when(lambda: lab[3].blobs().get(f"{name}.part", 0) >= kept + enough or name in lab[3].blobs() or image.there() and image.is_extended(),
         "more of it")
    lab[1].kill()
    lab[1].start()
    image.wait_extended(name)
    assert sent + lab[1].metric("cheops_blob_bytes_sent_total") < 2 * size, (kept, sent)
    for site in lab.sites:  # the sanitizers keep what was freed
        assert files_lab.IS_SANITIZED or site.peak_bytes() < 40 * MB, (site.name, site.peak_bytes())


def image_is_writable(lab, image):
    """At the new member: nothing may come between the item and its file."""
    return ask(lab[3].front + image.path[:-5], "PATCH", json_body={"early": True}).status == 200


def test_who_gives_dies_while_it_reads(lab):
    """Nothing was issued then; asked once more, it is done."""
    size = 60 * MB
    image = Pair(lab, "unread", size)
    asked = image.extending()
    when(lambda: lab[1].blobs() or asked.poll() is not None, "the file to be read at Site1")
    lab[1].kill()
    lab[1].start()
    asked.wait(4 * demo_process.BOUND_S)
    files_lab.mesh_maker.wait_reachable(lab.sites)
    image.settle()
    if not any(each["site"] == "Site3" for each in image.members()):
        image.extend("--wait")
    image.wait_extended(digest(content(size, "unread")))


def in_doubt(image):
    """At the new member."""
    found = ask(f"http://{image.lab[3].config['api']}/cheops/v1/operations?replicant={image.id}&state=in-doubt").json
    return found["operations"]


def test_who_is_new_dies_again_and_again(lab):
    """At whatever it is: the create, the upload, what is written down of them."""
    for turn in range(6):
        image = Pair(lab, f"again {turn}", 2 * MB)
        assert image.extending().wait(4 * demo_process.BOUND_S) == 0
        when(lambda image=image: image.there() or image.is_extended(), "something of it at Site3")
        threading.Event().wait(0.004 * turn)
        lab[3].kill()
        lab[3].start()
        files_lab.mesh_maker.wait_reachable(lab.sites)
        wait_for(lambda image=image: image.is_extended() or in_doubt(image), "it to go on")
        for each in in_doubt(image):  # names of images are not unique: whether it was made, a person has to see
            assert each["effect"] == "copy" and len(image.there()) == 1
            local = image.there()[0]["id"]
            assert ask(f"{lab[3].own}/images/{local}", "DELETE").status == 204
            assert ask(f"http://{lab[3].config['api']}/cheops/v1/operations/{each['id']}/retry", "POST").status in (200, 202)
        image.wait_extended(digest(content(2 * MB, f"again {turn}")))


# The file can be set, and nobody can read it.
ONE_WAY = """\
format: 1
application: pictures
services:
  image: {address: http://127.0.0.1:9292}
types:
  image.image:
    collection: /images
    item: /images/{id}
    list: /images
    operations:
      upload: {method: PUT, path: "{item}/file", facet: file, body: opaque}
"""


def test_what_cannot_be_read_is_not_left_out(tmp_path):
    """Better no copy than one that may lack something."""
    description = tmp_path / "pictures.yaml"
    description.write_text(ONE_WAY, encoding="utf-8")
    lab = files_lab.Lab(tmp_path, 3, str(description))
    try:
        image = Pair(lab, "one way")
        refused = image.extend(status=1)
        assert "what it has as `file` cannot be copied" in refused.stderr, refused
        assert not image.there()
    finally:
        lab.stop()
