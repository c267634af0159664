"""Facets under other descriptions of the image service: of a member that is stuck, and of JSON with ids in it."""
import pytest

import files_lab
from files_lab import ask, content, digest, wait_for
from test_file_repair import JSON_TYPE, MB, Image

# A patch counts as something that depends on what is there: two that were made apart cannot be put into order by running them again.
DESCRIPTION = """\
format: 1
application: pictures
services:
  image: {address: http://127.0.0.1:9292}
types:
  image.image:
    collection: /images
    item: /images/{id}
    list: /images
    name: /name
    volatile: [/created, /checksum]
    operations:
      patch: {effect: relative}
      upload: {method: PUT, path: "{item}/file", facet: file, %s}
      download: {method: GET, path: "{item}/file", facet: file, %s}
    resolutions:
      - {between: [relative, relative], as: keep-order}
"""
BYTES = DESCRIPTION % ("body: opaque", "answer: opaque")
# The file is a list of images: each site has to see its own ids in it.
WITH_IDS = DESCRIPTION % (('references: {"/images/*": image.image}',) * 2)


@pytest.fixture(name="pair")
def fixture_pair(tmp_path):
    made = []

    def make(description):
        path = tmp_path / "pictures.yaml"
        path.write_text(description, encoding="utf-8")
        made.append(files_lab.Lab(tmp_path, 2, str(path)))
        return made[0]

    yield make
    for lab in made:
        lab.stop()


def test_a_member_that_is_stuck_gets_the_file_too(pair):
    lab = pair(BYTES)
    image = Image(lab, "stuck", 3 * MB)
    lab.wait_no_blobs()  # nobody has the file but the services
    image.spoil(2, MB, "damaged meanwhile")
    # While one is away the other one is changed, and the other way round.
    lab[2].kill()
    assert ask(lab[1].front + image.path[:-5], "PATCH", json_body={"colour": "red"}).status == 200
    lab[1].kill()
    lab[2].start()
    assert ask(lab[2].front + image.path[:-5], "PATCH", json_body={"colour": "blue"}).status == 200
    lab[1].start()
    files_lab.mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: lab[1].metric("cheops_replica_repaired_total") + lab[2].metric("cheops_replica_repaired_total") > 0, "a repair")
    image.settle()
    image.wait_same(digest(content(3 * MB, "stuck")))
    assert {ask(image.own(site)).json["colour"] for site in (1, 2)} == {"blue"}
    assert set(image.words().values()) == {"same"}
    lab.wait_no_blobs()


def test_ids_in_json_are_those_of_each_site(pair):
    lab = pair(WITH_IDS)
    one, other = Image(lab, "one"), Image(lab, "other")
    assert ask(lab[1].front + one.path, "PUT", JSON_TYPE, json_body={"images": [other.id], "note": "x"}).status == 200

    def locals_in(site):
        return ask(one.own(site) + "/file").json["images"]

    def own_id(site):
        return other.own(site).rsplit("/", 1)[1]

    def are_right():
        return all(ask(one.own(site) + "/file").status == 200 and locals_in(site) == [own_id(site)] for site in (1, 2))

    wait_for(are_right, "the list at both")
    one.settle()
    assert own_id(1) != own_id(2)
    # Bytes differ, what is meant does not.
    assert one.words() == {"Site1": "same", "Site2": "same"}
    assert ask(one.own(2) + "/file", "PUT", JSON_TYPE, json_body={"images": [own_id(2)], "note": "y"}).status == 200
    assert one.facets() == {"Site1": {"file": "differs"}, "Site2": {"file": "differs"}} and one.verify()["tie"]
    assert len(one.repair("Site2")["operations"]) == 2
    wait_for(lambda: ask(one.own(1) + "/file").json["note"] == "y", "the list of Site2 at Site1")
    one.settle()
    assert are_right() and one.words() == {"Site1": "same", "Site2": "same"}
    # One that is too long to travel with an operation.
    long = {"images": [own_id(1)] * 5, "note": "z" * 200000}
    assert ask(one.own(1) + "/file", "PUT", JSON_TYPE, json_body=long).status == 200
    one.repair("Site1")
    wait_for(lambda: ask(one.own(2) + "/file").json["note"] == long["note"], "the long list at Site2")
    one.settle()
    assert locals_in(2) == [own_id(2)] * 5 and one.words() == {"Site1": "same", "Site2": "same"}
    lab.wait_no_blobs()
