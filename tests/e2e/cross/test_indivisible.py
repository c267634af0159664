"""`%` on what is indivisible: it lies at its prime, the first site that is named, and behaves at the others as if it were local."""
import pathlib

import pytest
from files_lab import Lab, ask, content, digest, download, mesh_maker, upload, wait_for

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Three sites where images are of that kind."""
    folder = tmp_path_factory.mktemp("indivisible")
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    item: /images/{id}\n", "    item: /images/{id}\n    cross: indivisible\n")
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = Lab(folder, 3, application=str(folder / "app.yaml"))
    yield made
    made.stop()


def names(site):
    return [image["name"] for image in ask(f"{site.own}/images").json["images"]]


def make(lab, name, at=1, scope="Site2 % Site1 % Site3"):
    answer = ask(f"{lab[at].front}/images", "POST", {"Scope": scope}, json_body={"name": name})
    assert answer.status == 201, answer.bytes
    return answer


def known_at(site, meta_id):
    return ask(f"http://{site.config['api']}/cheops/v1/replicants/{meta_id}")


def members(site, meta_id):
    return {each["site"]: each["state"] for each in known_at(site, meta_id).json["members"]}


def wait_known(lab, meta_id, at=(1, 2, 3)):
    for number in at:
        wait_for(lambda number=number: known_at(lab[number], meta_id).status == 200, f"Site{number} to know of it")


def test_it_lies_at_its_prime_and_is_found_from_everywhere(lab):
    answer = make(lab, "one")
    meta_id = answer.json["id"]
    assert dict(answer.headers)["Location"].endswith(meta_id)
    wait_known(lab, meta_id)
    assert [names(site).count("one") for site in lab.sites] == [0, 1, 0]
    for site in lab.sites:
        shown = ask(f"{site.front}/images/{meta_id}")
        assert (shown.status, shown.json["id"], shown.json["name"]) == (200, meta_id, "one"), site.name
    assert known_at(lab[3], meta_id).json["span"] == "placed"
    assert known_at(lab[3], meta_id).json["prime"] == "Site2"
    wait_for(lambda: [members(lab[3], meta_id)[name] for name in ("Site1", "Site2", "Site3")] ==
             ["witness", "settled", "witness"], "all to be told")


def test_it_is_changed_and_deleted_from_anywhere(lab):
    meta_id = make(lab, "changes", at=3).json["id"]
    wait_known(lab, meta_id)
    path = f"/images/{meta_id}"
    assert ask(lab[1].front + path, "PATCH", json_body={"name": "changed"}).json["name"] == "changed"
    assert ask(lab[3].front + path).json["name"] == "changed"
    assert upload(lab[3].front + path + "/file", 300_000, 7).status == 200
    assert download(lab[1].front + path + "/file") == (200, digest(content(300_000, 7)))
    lab.wait_no_blobs()
    assert ask(lab[1].front + path, "DELETE").status == 204
    assert names(lab[2]).count("changed") == 0
    for site in lab.sites:
        wait_for(lambda site=site: ask(site.front + path).status in (404, 410), f"{site.name} to know that it is gone")


def test_a_scope_does_not_matter_once_it_is_made(lab):
    meta_id = make(lab, "scoped").json["id"]
    wait_known(lab, meta_id)
    for scope in ("Site1", "Site3", "Site1; Site3", "{image: Site1}"):
        assert ask(f"{lab[1].front}/images/{meta_id}", headers={"Scope": scope}).json["name"] == "scoped", scope


def test_its_prime_is_away(lab):
    meta_id = make(lab, "away").json["id"]
    wait_known(lab, meta_id)
    lab[2].kill()
    try:
        answer = ask(f"{lab[1].front}/images/{meta_id}")
        assert answer.status in (502, 503, 504)
        assert "Site2" in answer.json["detail"]
        assert ask(f"{lab[1].front}/images/{meta_id}", "PATCH", json_body={"name": "no"}).status in (502, 503, 504)
        # What concerns this site alone goes on.
        assert ask(f"{lab[1].front}/images", "POST", json_body={"name": "local"}).status == 201
    finally:
        lab[2].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: ask(f"{lab[1].front}/images/{meta_id}").status == 200, "its prime to answer again")
    assert ask(f"{lab[1].front}/images/{meta_id}").json["name"] == "away"


def test_a_witness_that_starts_again_still_knows(lab):
    meta_id = make(lab, "remembered").json["id"]
    wait_known(lab, meta_id)
    lab[3].kill()
    lab[3].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: ask(f"{lab[3].front}/images/{meta_id}").status == 200, "it to be sent on again")


def test_what_the_description_does_not_span_is_refused(lab):
    """The sample's own description says nothing of `cross` for what is left."""
    answer = ask(f"{lab[1].front}/images", "POST", {"Scope": "Site1 % Site9"}, json_body={"name": "no"})
    assert answer.status == 400 and "Site9" in answer.json["detail"]
    assert ask(f"{lab[1].front}/whoami", headers={"Scope": "Site1 % Site2"}).status == 501
