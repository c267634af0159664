"""Files of replicated images that were changed behind the agents' backs, or are gone: compared, and given to whoever lacks them."""
import json
import re
import subprocess

import pytest
import yaml

import demo_process
import files_lab
from files_lab import ask, content, digest, download, upload, wait_for, when

MB = 1 << 20
JSON_TYPE = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = files_lab.Lab(tmp_path_factory.mktemp("repairs"))
    yield made
    made.stop()


def run(site, *arguments):
    return subprocess.run([files_lab.CHEOPS, *arguments, "--api", site.config["api"]], env=demo_process.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * demo_process.BOUND_S, check=False)


class Image:
    """One image at all sites, with a file if a size is given; as agents, and as the services themselves, have it."""

    def __init__(self, lab, name, size=None, scope=None, **members):
        self.lab, self.name = lab, name
        answer = ask(lab[1].front + "/images", "POST", {"Scope": scope or lab.all}, json_body={"name": name, **members})
        assert answer.status == 201, answer
        self.id = answer.json["id"]
        self.path = f"/images/{self.id}/file"
        self.settle()
        if size is not None:
            assert upload(lab[1].front + self.path, size, name).status == 200
            self.wait_same(digest(content(size, name)))

    def api(self, site, part="", method="GET", body=None):
        url = f"http://{self.lab[site].config['api']}/cheops/v1/replicants/{self.id}{part}"
        return ask(url, method, JSON_TYPE, json_body=body) if body is not None else ask(url, method)

    def members(self, site=1):
        return self.api(site).json["members"]

    def settle(self):
        wait_for(lambda: all(each["state"] == "settled" and each["local_id"] for each in self.members()),
                 f"{self.name} to be settled: {self.members()}")

    def own(self, site):
        """Where the service of that site has it."""
        name = self.lab[site].name
        local = next(each["local_id"] for each in self.members() if each["site"] == name)
        return f"{self.lab[site].own}/images/{local}"

    def files(self):
        """What each service has, past the agents: digest, or None."""
        found = {}
        for number, site in enumerate(self.lab.sites, 1):
            status, value = download(self.own(number) + "/file")
            found[site.name] = value if status == 200 else None
        return found

    def wait_same(self, value):
        wanted = {site.name: value for site in self.lab.sites}
        wait_for(lambda: self.files() == wanted, f"the file of {self.name} everywhere: {self.files()}")

    def spoil(self, site, size, seed):
        assert upload(self.own(site) + "/file", size, seed).status == 200

    def verify(self, site=1):
        answer = self.api(site, "/verify")
        assert answer.status == 200, answer
        return answer.json

    def words(self, site=1):
        return {each["site"]: each["verify"] for each in self.verify(site)["members"]}

    def facets(self, site=1):
        return {each["site"]: {facet["facet"]: facet["verify"] for facet in each["facets"]}
                for each in self.verify(site)["members"]}

    def repair(self, source, site=1):
        answer = self.api(site, "/repair", "POST", {"from": source})
        assert answer.status == 200, answer
        return answer.json


SAME = {"Site1": "same", "Site2": "same", "Site3": "same"}


def test_files_are_compared(lab):
    image = Image(lab, "untouched", 3 * MB)
    shown = image.verify()
    assert shown["verify"] == "same" and shown["not_compared"] == [] and not shown["tie"]
    for member in shown["members"]:
        assert member["facets"] == [{"facet": "file", "state": "here", "digest": digest(content(3 * MB, "untouched")),
                                     "bytes": 3 * MB, "reason": None, "verify": "same", "compared_with": shown["compared_with"]}]
    assert run(lab[1], "get", image.id, "--verify").returncode == 0


def test_without_a_file_they_are_the_same(lab):
    image = Image(lab, "no file")
    assert image.words() == SAME
    assert all(each["facets"][0]["state"] == "none" for each in image.verify()["members"])
    assert len(image.repair("Site1")["operations"]) == 1
    image.settle()
    assert image.words() == SAME


def test_a_changed_file_is_noticed_and_repaired(lab):
    image = Image(lab, "changed", 2 * MB)
    image.spoil(2, 2 * MB, "something else")
    for site in (1, 2, 3):
        assert image.words(site) == {**SAME, "Site2": "differs"}
        assert image.facets(site) == {"Site1": {"file": "same"}, "Site2": {"file": "differs"}, "Site3": {"file": "same"}}
    found = run(lab[1], "get", image.id, "--verify")
    here, there = digest(content(2 * MB, "something else"))[:12], digest(content(2 * MB, "changed"))[:12]
    assert found.returncode == 3, found
    assert re.search(rf"Site2  file: {2 * MB} bytes, SHA-256 {here}\.\.\., at Site[13] {2 * MB} bytes, SHA-256 {there}\.\.\.",
                     found.stdout), found
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = run(lab[3], "get", image.id, "--verify", "-o", form)
        members = read(found.stdout)["verify"]["members"]
        assert found.returncode == 3 and [each["facets"][0]["verify"] for each in members] == ["same", "differs", "same"]
    fixed = run(lab[1], "repair", f"image/{image.id}", "--from", "Site3", "--wait", "all")
    assert fixed.returncode == 0 and fixed.stdout.count("Site2 applied") == 2, fixed
    assert set(image.files().values()) == {digest(content(2 * MB, "changed"))}
    assert image.words() == SAME
    lab.wait_no_blobs()


def test_only_who_lacks_it_is_sent_the_file(lab):
    """Members look at what they have first: of three, one has to be sent it."""
    size = 5 * MB
    image = Image(lab, "once", size)
    lab.wait_no_blobs()  # what is left of the upload would do, and nothing be sent
    image.spoil(2, MB, "short")
    sent = sum(site.metric("cheops_blob_bytes_sent_total") for site in lab.sites)
    assert run(lab[2], "repair", image.id, "--from", "Site1", "--wait", "all").returncode == 0
    image.wait_same(digest(content(size, "once")))
    assert sum(site.metric("cheops_blob_bytes_sent_total") for site in lab.sites) - sent == size
    lab.wait_no_blobs()


def test_the_odd_one_may_be_the_right_one(lab):
    image = Image(lab, "odd", MB)
    image.spoil(3, 4 * MB, "newer")
    fixed = run(lab[1], "repair", image.id, "--from", "Site3", "--wait", "all", "-o", "json")
    shown = json.loads(fixed.stdout)
    assert fixed.returncode == 0 and shown["reached"] and [each["reached"] for each in shown["operations"]] == [True, True], fixed
    image.wait_same(digest(content(4 * MB, "newer")))
    assert image.words() == SAME
    lab.wait_no_blobs()


def test_a_deleted_copy_is_made_anew_with_its_file(lab):
    image = Image(lab, "deleted behind", 3 * MB)
    before = image.own(2)
    assert ask(before, "DELETE").status == 204
    assert image.words() == {**SAME, "Site2": "missing"}
    assert run(lab[1], "get", image.id, "--verify").returncode == 3
    fixed = run(lab[3], "repair", image.id, "--from", "Site1", "--wait", "all")
    assert fixed.returncode == 0, fixed
    image.wait_same(digest(content(3 * MB, "deleted behind")))
    assert image.own(2) != before and image.words() == SAME
    lab.wait_no_blobs()


@pytest.mark.parametrize("size", [0, 1, 65536, 65537])
def test_files_of_any_size(lab, size):
    image = Image(lab, f"of {size}", size)
    image.spoil(2, 100, "another")
    image.repair("Site1")
    image.wait_same(digest(content(size, f"of {size}")))
    image.settle()
    assert image.words() == SAME
    lab.wait_no_blobs()


def test_a_file_that_the_chosen_site_has_not_stays_elsewhere(lab):
    """Nothing says how a file is taken away: it is told, and nothing is guessed."""
    image = Image(lab, "no file at one", MB)
    assert ask(image.own(2), "DELETE").status == 204
    made = ask(lab[2].own + "/images", "POST", json_body={"name": "another"})  # so that there is something to compare with
    assert made.status == 201
    image2 = Image(lab, "never had one")
    image2.spoil(3, MB, "only here")
    assert image2.facets() == {"Site1": {"file": "same"}, "Site2": {"file": "same"}, "Site3": {"file": "differs"}}
    assert len(image2.repair("Site1")["operations"]) == 1
    image2.settle()
    assert image2.facets()["Site3"] == {"file": "differs"}
    assert run(lab[1], "repair", image2.id, "--from", "Site3", "--wait", "all").returncode == 0
    assert image2.words() == SAME
    run(lab[1], "repair", image.id, "--from", "Site1", "--wait", "all")
    lab.wait_no_blobs()


def test_a_member_that_is_away_gets_it_later(lab):
    image = Image(lab, "away", 6 * MB)
    image.spoil(3, MB, "stale")
    lab[3].kill()
    operations = image.repair("Site1")["operations"]
    assert len(operations) == 2
    wait_for(lambda: next(each for each in image.members() if each["site"] == "Site2")["state"] == "settled", "Site2 to have it")
    assert list(lab[1].blobs().values()) == [6 * MB], "it is kept for who is away"
    lab[3].start()
    image.wait_same(digest(content(6 * MB, "away")))
    lab.wait_no_blobs()
    assert image.words() == SAME


def test_killed_in_the_middle(lab):
    """Who takes it is killed while the file comes, who gives it while it is read: in the end all have it."""
    size = 40 * MB
    name = digest(content(size, "killed"))
    image = Image(lab, "killed", size)
    image.spoil(2, MB, "wrong")
    image.repair("Site1")
    when(lambda: any(each.endswith(".part") for each in lab[2].blobs()) or name in lab[2].blobs(), "some of it at Site2")
    lab[2].kill()
    lab[2].start()
    image.wait_same(name)
    lab.wait_no_blobs()
    # A repair whose giver dies while it reads leaves nothing; asked once more, it is done.
    image.spoil(2, MB, "wrong again")
    asked = subprocess.Popen([files_lab.CHEOPS, "repair", image.id, "--from", "Site1", "--api", lab[3].config["api"]],
                             env=demo_process.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    when(lambda: lab[1].blobs() or asked.poll() is not None, "the file to be read at Site1")
    lab[1].kill()
    lab[1].start()
    asked.wait(4 * demo_process.BOUND_S)
    files_lab.mesh_maker.wait_reachable(lab.sites)
    image.settle()
    image.repair("Site1")
    image.wait_same(name)
    lab.wait_no_blobs()
    wait_for(lambda: image.words() == SAME, "all to be the same")


def test_a_long_state_travels_as_a_file(lab):
    """More than what an operation can carry; and more than what can be looked into at all."""
    notes = "x" * 200000
    image = Image(lab, "wordy", notes=notes)
    assert ask(image.own(2), "PATCH", JSON_TYPE, json_body={"notes": "short"}).status == 200
    assert image.words() == {**SAME, "Site2": "differs"}
    assert run(lab[1], "repair", image.id, "--from", "Site1", "--wait", "all").returncode == 0
    assert ask(image.own(2)).json["notes"] == notes and image.words() == SAME
    before = image.own(3)
    assert ask(before, "DELETE").status == 204
    assert run(lab[1], "repair", image.id, "--from", "Site2", "--wait", "all").returncode == 0
    assert image.own(3) != before and ask(image.own(3)).json["notes"] == notes and image.words() == SAME
    lab.wait_no_blobs()


def test_no_room_for_the_file_is_told(lab):
    image = Image(lab, "no room", 20 * MB)
    image.spoil(2, MB, "other")
    lab[1].limit_files(8 * MB)
    try:
        answer = image.api(3, "/repair", "POST", {"from": "Site1"})
        assert answer.status == 502 and "file cannot be read" in answer.json["detail"], answer
        assert not lab[1].blobs()
    finally:
        lab[1].limit_files(-1)
    image.repair("Site1")
    image.wait_same(digest(content(20 * MB, "no room")))
    lab.wait_no_blobs()


def test_memory_does_not_follow_the_size(lab):
    size = 256 * MB
    image = Image(lab, "huge", size)
    image.spoil(2, MB, "little")
    assert image.words() == {**SAME, "Site2": "differs"}
    image.repair("Site3")
    image.wait_same(digest(content(size, "huge")))
    lab.wait_no_blobs()
    image.settle()
    assert image.words() == SAME
    for site in lab.sites:  # the sanitizers keep what was freed
        assert files_lab.IS_SANITIZED or site.peak_bytes() < 40 * MB, (site.name, site.peak_bytes())
