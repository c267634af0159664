"""What is required may require something itself: it all comes along, each thing once, in an order in which it can be made."""
import pathlib

import pytest

from demo_process import ask, wait_for
from places import places, wait_alike

APPS = pathlib.Path(__file__).resolve().parents[3] / "apps"
BOTH = "with_requirements(Site1 & Site2)"


@pytest.fixture
def two(mesh, tmp_path):
    """The sample, described so that an image requires those it is based on."""
    text = (APPS / "sample.yaml").read_text(encoding="utf-8")
    based = text.replace("    volatile: [/created]\n    operations:\n      upload:", """    volatile: [/created]
    references: {body: {/base: {type: image.image, kind: requirement}, "/more/*": {type: image.image, kind: requirement}}}
    operations:
      upload:""", 1)
    assert based != text
    path = tmp_path / "based.yaml"
    path.write_text(based, encoding="utf-8")
    return places(mesh, application=str(path))


def image(site, name, **members):
    made = ask(site.url("image") + "/images", "POST", json_body={"name": name, **members})
    assert made.status == 201, made
    return made.json["id"]


def test_all_of_it_comes_along(two):
    one, other = two
    root = image(one, "root")
    left, right = image(one, "left", base=root), image(one, "right", base=root)
    top = image(one, "top", more=[left, right])
    made = one.create(BOTH, name="deep", image=top)
    assert made.status == 201, made
    assert one.api(f"/operations/{made.header('Cheops-Operation')}?wait=all&timeout=60").json["reached"]
    for name in ("root", "left", "right", "top"):
        wait_alike(two, "images", name)
    theirs = {name: other.named("images", name)[0] for name in ("root", "left", "right", "top")}
    assert theirs["left"]["base"] == theirs["right"]["base"] == theirs["root"]["id"] != root
    assert theirs["top"]["more"] == [theirs["left"]["id"], theirs["right"]["id"]]
    assert len(one.replicants("image")) == 4


def test_what_requires_itself_is_refused(two):
    one, other = two
    first = image(one, "first")
    second = image(one, "second", base=first)
    assert ask(one.url("image") + f"/images/{first}", "PATCH", json_body={"base": second}).status == 200
    answer = one.create(BOTH, name="never", image=second)
    assert (answer.status, answer.problem["type"]) == (409, "requirement-not-brought"), answer
    assert "requires itself" in answer.problem["detail"]
    assert other.named("images", "first") == other.named("images", "second") == one.named("servers", "never") == []
    # Once that is mended, it works.
    assert ask(one.url("image") + f"/images/{first}", "PATCH", json_body={"base": None}).status == 200
    made = one.create(BOTH, name="after all", image=second)
    assert made.status == 201, made
    wait_for(lambda: len(other.named("servers", "after all")) == 1, "the server at Site2")


def test_there_is_an_end_to_it(two):
    one, other = two
    last = image(one, "image 0")
    for n in range(1, 12):
        last = image(one, f"image {n}", base=last)
    answer = one.create(BOTH, name="too deep", image=last)
    assert (answer.status, answer.problem["type"]) == (409, "requirement-not-brought"), answer
    assert "8 deep" in answer.problem["detail"] and other.named("images", "image 11") == []
