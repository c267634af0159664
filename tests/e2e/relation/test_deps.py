"""cheops deps, and what the API says of dependencies: trees, who refers to what, what would suffer."""
import urllib.parse

import pytest
import yaml

from demo_process import ask, wait_for
from test_operations import NOWHERE, Paused, api
from test_reliance import BOTH, delete, secret, server, stack


@pytest.fixture(scope="module")
def deps(cheops, demo):
    def run(*arguments, site="Site1"):
        return cheops("deps", *arguments, "--api", urllib.parse.urlsplit(demo.sites[site]["api"]).netloc)
    return run


def lines(result):
    assert result.status == 0, result
    return result.out.splitlines()


@pytest.fixture(scope="module")
def shop(demo):
    """A project with a server in it, that relies on a secret, and requires an image: {name: meta-id}."""
    project = ask(demo.url("Site1", "compute") + "/projects", "POST", {"Scope": BOTH, "Prefer": "wait=60"},
                  json_body={"name": "shop"}).json["id"]
    key = secret(demo, "key of the shop", BOTH)
    return {"project": project, "secret": key, "server": server(demo, "web", BOTH, f"/projects/{project}/servers",
                                                                secret=key)}


def test_a_tree(demo, deps, shop):
    for site in ("Site1", "Site2"):
        first, *rest = lines(deps("tree", shop["server"], site=site))
        assert first.startswith(f"compute.server {shop['server']}  settled  Site") and len(rest) == 3
        text = "\n".join(rest)
        assert f"relies on image.secret {shop['secret']}  settled  " in text and "requires image.image " in text
        assert f"in compute.project {shop['project']} (shop)  settled  " in text
        assert [line[:3] for line in rest] == ["├─ ", "├─ ", "└─ "]


def test_what_is_in_a_container_is_below_it(deps, shop):
    text = deps("tree", "project/shop").out
    assert text.startswith(f"compute.project {shop['project']} (shop)")
    assert f"└─ contains compute.server {shop['server']}" in text and f"   ├─ in compute.project" in text
    assert "(see above)" in text  # and it ends there


def test_a_site_that_only_knows_of_it_knows_what_it_is_in(demo, deps, shop):
    made = ask(demo.url("Site1", "compute") + f"/projects/{shop['project']}/volumes", "POST",
               {"Scope": "Site1 % Site2", "Prefer": "wait=60"}, json_body={"name": "data", "size": 1})
    assert made.status == 201, made
    for site in ("Site1", "Site2"):
        wait_for(lambda site=site: f"contains compute.volume {made.json['id']} (data)" in deps("tree", shop["project"], site=site).out,
                 f"it at {site}")
    assert delete(demo, f"/volumes/{made.json['id']}", "compute").status == 204
    for site in ("Site1", "Site2"):
        wait_for(lambda site=site: made.json["id"] not in deps("tree", shop["project"], site=site).out, f"it to go at {site}")


def test_why_and_impact(deps, shop):
    first, below = lines(deps("why", shop["secret"], site="Site2"))
    assert first.startswith(f"image.secret {shop['secret']}") and below.startswith(f"└─ relied on by compute.server {shop['server']}")
    assert lines(deps("impact", shop["secret"]))[1].startswith(f"└─ relied on by compute.server {shop['server']}")
    assert f"contains compute.server {shop['server']}" in lines(deps("impact", "compute.project/shop"))[1]
    assert lines(deps("why", shop["server"]))[1] == "nothing that this site knows of refers to it"
    assert lines(deps("impact", shop["server"]))[1] == "nothing that this site knows of would suffer"


def test_an_image_is_why_but_nobody_suffers(demo, deps, shop):
    root = api(demo, "Site1", f"/deps?of={shop['server']}").json["root"]
    image = next(each for each in root["below"] if each["relation"] == "requires")["id"]
    assert f"required by compute.server {shop['server']}" in deps("why", image).out
    assert "would suffer" in deps("impact", image).out


def test_parts_are_of_each_site(demo, deps):
    made = stack(demo, "three parts", BOTH)
    for site in ("Site1", "Site2"):
        local = next(each["id"] for each in ask(demo.own_url(site, "compute") + "/stacks").json["stacks"]
                     if each["name"] == "three parts")
        parts = ask(demo.own_url(site, "compute") + f"/stacks/{local}").json["servers"]
        text = deps("tree", "stack/three parts", site=site).out
        assert len(parts) == 2 and all(f"part compute.server {part}  not-replicated  {site}" in text for part in parts)
        assert f"part of compute.stack {made}" in deps("why", f"compute.server/{parts[0]}", site=site).out
        assert f"part compute.server {parts[1]}" in deps("impact", made, site=site).out


def test_for_programs(demo, deps, shop):
    made = deps("tree", shop["server"], "-o", "json").json
    assert made == yaml.safe_load(deps("tree", shop["server"], "-o", "yaml").out)
    assert made["site"] == "Site1" and made["root"]["id"] == shop["server"]
    relied = next(each for each in made["root"]["below"] if each["relation"] == "relies-on")
    assert (relied["id"], relied["place"], relied["type"]) == (shop["secret"], "/secret", "image.secret")
    assert sorted(relied["sites"]) == ["Site1", "Site2"] and relied["below"] == []
    for view in ("tree", "why", "impact"):
        assert api(demo, "Site1", f"/deps?of={shop['secret']}&view={view}").status == 200


def test_what_is_not_replicated(demo, deps, cheops):
    key = secret(demo, "of Site1 alone")
    relying = server(demo, "relies on that", "{compute: Site1 & Site3, image: Site1}", secret=key)
    for name in (f"image.secret/{key}", f"secret/{key}"):
        first, below = lines(deps("why", name))
        assert first == f"image.secret {key}  not-replicated  Site1"
        assert below.startswith(f"└─ relied on by compute.server {relying}")
    assert f"relies on image.secret {key}  not-replicated  Site1" in deps("tree", relying, site="Site3").out
    delete(demo, f"/secrets/{key}")
    wait_for(lambda: f"relies on image.secret {key}  gone" in deps("tree", relying).out, "it to be shown as gone")
    assert f"compute.server {relying}  settled, at risk" in deps("tree", relying).out
    address = urllib.parse.urlsplit(demo.sites["Site1"]["api"]).netloc
    listed = next(line for line in cheops("get", "server", "--api", address).out.splitlines() if line.startswith(relying))
    assert "settled, at risk" in listed
    shown = cheops("get", relying, "--api", address).out.splitlines()
    assert shown[1] == f"at risk: relies on image.secret {key} at /secret, which is gone"


def test_a_site_that_went_away(demo, deps):
    key = secret(demo, "at Site2", at="Site2")
    relying = server(demo, "relies on Site2", "{compute: Site1 & Site3, image: Site2}", secret=key)
    volume = ask(demo.url("Site2", "compute") + "/volumes", "POST", {"Scope": "Site2 % Site1", "Prefer": "wait=60"},
                 json_body={"name": "there", "size": 1}).json["id"]
    wait_for(lambda: api(demo, "Site1", f"/replicants/{volume}").status == 200, "the volume to be known")
    answer = deps("impact", "--site", "Site2", "-o", "json").json
    suffering = {each["id"]: each for each in answer["suffering"]}
    assert suffering[relying]["why"] == "relies-on" and suffering[relying]["relies_on"][0]["local_id"] == key
    assert suffering[volume]["why"] == "only-copy" and suffering[volume]["sites"] == ["Site2"]
    assert answer["copies"] > 0
    text = deps("impact", "--site", "Site2").out
    assert f"relies on image.secret {key}" in text and "the only copy" in text and "would lose one of several copies" in text
    assert relying not in deps("impact", "--site", "Site3").out
    pages = api(demo, "Site1", "/deps/sites/Site2?limit=1").json
    assert len(pages["suffering"]) == 1 and pages["next"]
    with Paused(demo, "Site2"):
        wait_for(lambda: api(demo, "Site1", f"/replicants/{relying}").json["at_risk"], "the risk")
        assert relying not in deps("impact", "--site", "Site2").out  # it suffers already
        assert f"relies on image.secret {key}  not-replicated  Site2, which cannot be reached" in deps("tree", relying).out
    wait_for(lambda: api(demo, "Site1", f"/replicants/{relying}").json["at_risk"] is None, "its end")


def test_circles_and_crowds(demo, deps):
    project = ask(demo.url("Site1", "compute") + "/projects", "POST", {"Scope": BOTH, "Prefer": "wait=60"},
                  json_body={"name": "crowd"}).json["id"]
    for i in range(30):
        assert ask(demo.url("Site1", "compute") + f"/projects/{project}/volumes", "POST", {"Scope": BOTH, "Prefer": "wait=60"},
                   json_body={"name": f"v{i}", "size": 1}).status == 201
    assert lines(deps("tree", "project/crowd")) and deps("tree", project).out.count("contains compute.volume") == 30


@pytest.mark.parametrize("arguments, said", [
    ([], "what is to be shown?"), (["three"], "did you mean `tree`?"), (["tree"], "of what?"), (["impact"], "--site SITE"),
    (["tree", "--site", "Site2"], "--site goes with impact only"), (["tree", "web"], "is no resource"),
    (["why", "a/b", "c/d"], "One resource is named already"), (["impact", "a/b", "--site", "Site2"], "name one of them"),
    (["tree", "/b"], "is no resource"), (["tree", "a/"], "is no resource"),
])
def test_wrong_usage(deps, arguments, said):
    result = deps(*arguments)
    assert result.status == 2 and said in result.err, result


def test_what_is_refused(demo, deps):
    assert "nothing is known of it at this site" in deps("tree", NOWHERE).err
    assert "no type `nonsense`" in deps("why", "nonsense/1").err
    assert "nothing is known of it" in deps("why", "image.secret/nothing").err
    assert "no site `Site9` is known" in deps("impact", "--site", "Site9").err
    for path, status in (("/deps", 422), ("/deps?of=x", 422), (f"/deps?of={NOWHERE}&view=x", 422), (f"/deps?of={NOWHERE}", 404),
                         ("/deps?type=secret", 422), ("/deps/sites/Site2?limit=0", 422), ("/deps/sites/Site2?after=x", 422)):
        assert api(demo, "Site1", path).status == status, path
