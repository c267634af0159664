"""A description may say that a delete loses against what others did meanwhile: then it is undone where it was carried out."""
import pathlib

import pytest
from files_lab import Lab, ask, content, digest, download, upload, wait_for

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"
MB = 1 << 20


@pytest.fixture
def lab(tmp_path):
    """Two sites where images are of that kind."""
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    item: /images/{id}\n", "    item: /images/{id}\n    delete: loses\n")
    assert described != text
    (tmp_path / "losing.yaml").write_text(described, encoding="utf-8")
    made = Lab(tmp_path, 2, application=str(tmp_path / "losing.yaml"))
    yield made
    made.stop()


def images(site):
    """As its service has them, past the agents."""
    return ask(f"{site.own}/images").json["images"]


def names(site):
    return [image["name"] for image in images(site)]


def replicant(site, meta_id):
    return ask(f"http://{site.config['api']}/cheops/v1/replicants/{meta_id}").json


def local_id(site, meta_id):
    return next(each["local_id"] for each in replicant(site, meta_id)["members"] if each["site"] == site.name)


def is_settled(site, meta_id):
    shown = replicant(site, meta_id)
    return shown["state"] == "settled" and all(each["local_id"] for each in shown["members"])


def lose_a_delete(lab, meta_id):
    """Deleted at Site1 while Site2, which does not hear of it, changes it."""
    path = f"/images/{meta_id}"
    lab[1].kill()
    assert ask(lab[2].front + path, "PATCH", json_body={"name": "after"}).status == 200
    lab[2].kill()
    lab[1].start()
    assert ask(lab[1].front + path, "DELETE").status == 204
    assert names(lab[1]) == []
    lab[2].start()


def test_it_is_made_anew_where_it_was_deleted(lab):
    answer = ask(f"{lab[1].front}/images", "POST", {"Scope": lab.all}, json_body={"name": "before"})
    assert answer.status == 201
    meta_id, path = answer.json["id"], f"/images/{answer.json['id']}"
    assert upload(f"{lab[1].front}{path}/file", 2 * MB, "kept").status == 200
    file = (200, digest(content(2 * MB, "kept")))
    for site in lab.sites:
        wait_for(lambda site=site: is_settled(site, meta_id), f"{site.name} to be settled")
    before = local_id(lab[1], meta_id)
    lose_a_delete(lab, meta_id)
    for site in lab.sites:
        wait_for(lambda site=site: names(site) == ["after"], f"it to be there at {site.name}: {site.log()}")
        wait_for(lambda site=site: is_settled(site, meta_id), f"{site.name} to be settled: {replicant(site, meta_id)}")
        # Its file too; by its id, through the agents, and at the service.
        wait_for(lambda site=site: download(f"{site.front}{path}/file") == file, f"its file at {site.name}")
        assert download(f"{site.own}/images/{images(site)[0]['id']}/file") == file
        assert local_id(site, meta_id) == str(images(site)[0]["id"])
    assert local_id(lab[1], meta_id) != before
    # Changed from either site, and deleted as any other where nothing is concurrent.
    assert ask(lab[1].front + path, "PATCH", json_body={"name": "later"}).status == 200
    wait_for(lambda: names(lab[2]) == ["later"], "the change at Site2")
    assert ask(lab[2].front + path, "DELETE").status == 204
    for site in lab.sites:
        wait_for(lambda site=site: names(site) == [], f"it to be gone at {site.name}")
    lab.wait_no_blobs()


def test_it_is_made_anew_once_if_agents_die_meanwhile(lab):
    answer = ask(f"{lab[1].front}/images", "POST", {"Scope": lab.all}, json_body={"name": "before"})
    meta_id = answer.json["id"]
    for site in lab.sites:
        wait_for(lambda site=site: is_settled(site, meta_id), f"{site.name} to be settled")
    lose_a_delete(lab, meta_id)
    wait_for(lambda: names(lab[1]) == ["after"], f"it to be there at Site1: {lab[1].log()}")
    lab[1].kill()  # perhaps before it has written down what it was told
    lab[1].start()

    def decided():
        """No image of the sample has a name that is there once: whether it was made is for a person to say, if that is not known."""
        if is_settled(lab[1], meta_id):
            return True
        return any(each["in_doubt"] for each in replicant(lab[1], meta_id)["members"])

    wait_for(decided, f"it to be settled or in doubt: {replicant(lab[1], meta_id)}")
    assert names(lab[1]) == ["after"]
