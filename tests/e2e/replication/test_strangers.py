"""A site that is asked by another to carry something out for several sites has to know all of them: run there alone, what the user was told
is at all of them would be at one."""
import json
import pathlib

import mesh_maker
import pytest
from files_lab import Lab, ask


@pytest.fixture
def lab(tmp_path):
    made = Lab(tmp_path, 2)
    yield made
    made.stop()


SCOPES = ["{image: Site2 & Stranger}", "{image: weak(Site2 & Stranger)}", "{image: Site2 % Stranger}"]


@pytest.mark.parametrize("scope", SCOPES)
def test_nothing_is_made_for_a_site_that_is_not_known_yet(lab, scope):
    status, headers, body = mesh_maker.ask_peer(
        lab[2].config["peer"], pathlib.Path(lab[1].config["state"]), "POST", "/images",
        {"Cheops-Hop": "v2 service=image hops=1", "Scope": scope, "Content-Type": "application/json"},
        json.dumps({"name": "half"}).encode())
    assert status == 503, body
    assert json.loads(body)["type"] == "urn:cheops:problem:not-seen-yet" and "Stranger" in json.loads(body)["detail"]
    assert dict(headers)["Cheops-Outcome"] == "not-run" and dict(headers)["Retry-After"] == "1"
    assert ask(f"{lab[2].own}/images").json["images"] == []
