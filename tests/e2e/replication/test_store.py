"""A store that cannot be used: what needs it is refused with a reason, and whatever touches no replica goes on."""
import subprocess
import threading

import pytest
from files_lab import Lab, ask, wait_for


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path, 2)
    yield made
    made.stop()


def make(site, name, scope=None):
    return ask(f"{site.front}/images", "POST", {"Scope": scope} if scope else {}, json_body={"name": name})


def names(url):
    return sorted(image["name"] for image in ask(f"{url}/images").json["images"])


def own_traffic_goes_on(site):
    """Nothing of it is replicated."""
    made = make(site, "its own")
    assert made.status == 201, made
    own = f"{site.front}/images/{made.json['id']}"
    assert ask(own).json["name"] == "its own" and ask(own, "DELETE").status == 204


def is_refused(answer, status, problem):
    assert (answer.status, answer.problem["type"]) == (status, problem), answer
    return answer.problem["detail"]


def is_at_rest(site):
    """For a second nothing has been committed: whatever others had to say of what was made has been said."""
    before = site.metric("cheops_store_commits_total")
    threading.Event().wait(1)
    return site.metric("cheops_store_commits_total") == before


def test_a_disk_that_is_full_for_a_while(lab):
    made = [name for name in map(str, range(3)) if make(lab[1], name, lab.all).status == 201]
    wait_for(lambda: names(lab[2].own) == made, "all of them at Site2")
    wait_for(lambda: is_at_rest(lab[1]), "Site1 to have nothing to write")
    lab[1].limit_files(1)  # neither journal nor store, nor the log, can be written to
    detail = is_refused(make(lab[1], "too much", lab.all), 507, "store-full")
    assert "nothing was done" in detail and "the disk is full" in detail
    own_traffic_goes_on(lab[1])
    assert names(lab[1].own) == made
    lab[1].limit_files(-1)
    wait_for(lambda: make(lab[1], "room again", lab.all).status == 201, "it to be tried again, without a restart")
    made.append("room again")
    for site in lab.sites:
        wait_for(lambda site=site: names(site.own) == made, f"what was acknowledged, and no more, at {site.name}: {site.log()}")


def test_a_damaged_store(lab):
    """It is not touched, and nothing is guessed. Restored from a copy, all is there."""
    answer = make(lab[1], "before", lab.all)
    wait_for(lambda: names(lab[2].own) == ["before"], "it at Site2")
    lab[1].agent.terminate()
    lab[1].agent.wait(30)
    data = lab[1].folder / "state" / "store" / "data.mdb"
    copy = data.read_bytes()
    damaged = copy[:2 * 4096] + b"\xff" * (len(copy) - 2 * 4096)
    data.write_bytes(damaged)
    lab[1].start()
    assert "replicated resources are not available" in lab[1].log() and f"{data}: page" in lab[1].log()
    assert "log" in is_refused(make(lab[1], "refused", lab.all), 503, "store-failed")
    own_traffic_goes_on(lab[1])
    assert data.read_bytes() == damaged
    data.write_bytes(copy)
    lab[1].agent.terminate()
    lab[1].agent.wait(30)
    lab[1].start()
    assert ask(f"{lab[1].front}/images/{answer.json['id']}").json["name"] == "before"
    assert make(lab[1], "later", lab.all).status == 201
    wait_for(lambda: names(lab[2].own) == ["before", "later"], "both at Site2")


def test_a_folder_that_is_read_only(lab):
    """As Linux makes of a file system whose disk has failed. Needs root, as all labs do."""
    store = lab[1].folder / "state" / "store"
    lab[1].agent.terminate()
    lab[1].agent.wait(30)
    subprocess.run(["mount", "--bind", store, store], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", store], check=True)
        lab[1].start()
        assert "Read-only file system" in lab[1].log()
        is_refused(make(lab[1], "refused", lab.all), 503, "store-failed")
        own_traffic_goes_on(lab[1])
    finally:
        subprocess.run(["umount", store], check=True)
    lab[1].agent.terminate()
    lab[1].agent.wait(30)
    lab[1].start()
    assert make(lab[1], "writable again", lab.all).status == 201
