"""A description may say that a delete loses against what others did meanwhile: then these keep what they have."""
import pathlib

import pytest
from files_lab import Lab, ask, wait_for

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"


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


def names(site):
    return [image["name"] for image in ask(f"{site.own}/images").json["images"]]


def test_what_others_changed_meanwhile_stays(lab):
    answer = ask(f"{lab[1].front}/images", "POST", {"Scope": lab.all}, json_body={"name": "before"})
    assert answer.status == 201
    path = f"/images/{answer.json['id']}"
    wait_for(lambda: names(lab[2]) == ["before"], "it at Site2")
    wait_for(lambda: state_at(lab[1], answer.json["id"]) == "settled", "Site1 to know that")
    lab[1].kill()
    assert ask(lab[2].front + path, "PATCH", json_body={"name": "after"}).status == 200
    lab[2].kill()
    lab[1].start()
    assert ask(lab[1].front + path, "DELETE").status == 204
    assert names(lab[1]) == []
    lab[2].start()
    # The delete has lost, and nothing is deleted at Site2. Ids are assigned: Site1 cannot make it again by itself, which is shown.
    wait_for(lambda: state_at(lab[2], answer.json["id"]) == "diverged", f"that to be shown: {lab[2].log()}")
    assert names(lab[2]) == ["after"]
    assert ask(lab[2].front + path, "PATCH", json_body={"name": "later"}).status == 200
    assert names(lab[2]) == ["later"]


def state_at(site, meta_id):
    return ask(f"http://{site.config['api']}/cheops/v1/replicants/{meta_id}").json["state"]
