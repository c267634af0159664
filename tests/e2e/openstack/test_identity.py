"""A new tenant is made at Site1, with `&`, and works at Site2: a project, a user, what the user may do, a flavor. Keystone makes its ids
itself: each site has its own, and references to them are each site's own as well. So is a token of his, unless the scope names the Keystone
that gave it."""
import json
import subprocess

import pytest
from openstack_lab import COMMANDS, ROOT, wait_for
from test_replication import BOTH, create, log_in, settled, wait_active

IDENTITY = "{identity: Site1 & Site2}"
COMPUTE = "{compute: Site1 & Site2}"


def local(lab, site, kind, name):
    """As that site's Keystone has it, past the agent; None: it has none."""
    found = lab.ask(site, "identity", f"/v3/{kind}?name={name}", direct=True).json[kind]
    assert len(found) < 2, found
    return found[0] if found else None


def make_tenant(lab, site="Site1"):
    """(name, meta-id of the project, of the user); by the real client."""
    name = lab.name("tenant")
    project = lab.openstack(site, f"project create -f json {name}", IDENTITY).json["id"]
    user = lab.openstack(site, f"user create -f json --password secret --project {name} {name}", IDENTITY).json["id"]
    given = lab.openstack(site, f"role add --project {name} --user {name} member", IDENTITY)
    assert given.status == 0, given
    return name, project, user


def as_tenant(lab, site, name, words, scope=None):
    return lab.openstack(site, [f"--os-username={name}", f"--os-project-name={name}", "--os-password=secret", *words.split()],
                         scope)


@pytest.fixture(scope="module")
def tenant(sites):
    """One who is known at both sites: (name, {site: the id of his project there})."""
    name, project, user = make_tenant(sites)
    settled(sites, project)
    settled(sites, user)
    return name, {site: local(sites, site, "projects", name)["id"] for site in sites.sites}


def by(lab, site, name):
    """With the token that this site's Keystone gave him."""
    return {"X-Auth-Token": lab.token(site, name)}


def test_a_new_tenant_works_at_both(lab):
    name, project, user = make_tenant(lab)
    flavor = lab.name("flavor")
    made = lab.openstack("Site1", f"flavor create -f json --ram 64 --disk 1 --vcpus 1 {flavor}", COMPUTE).json["id"]
    image = create(lab, lab.file(), lab.name("image"))
    assert lab.openstack("Site1", f"image set --public {image}").status == 0
    for each in (project, user, made, image):
        settled(lab, each)
    wait_active(lab, "Site2", image)
    ids = {site: (local(lab, site, "projects", name)["id"], local(lab, site, "users", name)) for site in lab.sites}
    assert ids["Site1"][0] != ids["Site2"][0]
    for site in lab.sites:  # each user's project is that of his site
        assert ids[site][1]["default_project_id"] == ids[site][0]
    with lab.apart():
        for site in lab.sites:
            assert as_tenant(lab, site, name, "token issue -f value -c project_id").out.strip() == ids[site][0]
            server = lab.name("vm")
            run = as_tenant(lab, site, name, f"server create {server} --image {image} --flavor {flavor} --nic none --wait -f json")
            assert run.json["status"] == "ACTIVE"
            assert lab.servers(site)[server]["tenant_id"] == ids[site][0]


def test_what_is_done_to_a_tenant_later(lab):
    """From the other site: he is renamed and gets another password, loses his role, and is deleted."""
    name, project, user = make_tenant(lab)
    settled(lab, project)
    settled(lab, user)
    other = lab.name("tenant")
    assert lab.openstack("Site2", f"user set --name {other} --password changed {user}").status == 0
    settled(lab, user)
    for site in lab.sites:
        run = lab.openstack(site, [f"--os-username={other}", f"--os-project-name={name}", "--os-password=changed", "token", "issue"])
        assert run.status == 0, run
    assert lab.openstack("Site2", f"role remove --project {project} --user {user} member").status == 0
    settled(lab, project)
    for site in lab.sites:
        lab.openstack(site, [f"--os-username={other}", f"--os-project-name={name}", "--os-password=changed", "token", "issue"]
                      ).refused("401")
    assert lab.openstack("Site2", f"user delete {user}").status == 0
    assert lab.openstack("Site2", f"project delete {project}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: not local(lab, site, "users", other) and not local(lab, site, "projects", name),
                 f"the tenant to be gone from {site}")


def test_a_tenant_made_while_a_site_is_away(lab):
    """And administrators' tokens do not matter to it: Keystone takes none that has expired, so the agents are users themselves. What he has made by
    then comes to Site2 as well, and is his there, when he is known there, though his token has expired meanwhile."""
    with lab.apart():
        name, project, user = make_tenant(lab)
        assert local(lab, "Site2", "users", name) is None
        with lab.tokens_for("Site1", life_s=25):
            token = {"X-Auth-Token": log_in(lab, "Site1", name)}
        image = lab.ask("Site1", "image", "/v2/images", "POST", headers=token, scope=BOTH, body={
            "name": lab.name("image"), "disk_format": "raw", "container_format": "bare"}).json["id"]
        wait_for(lambda: lab.ask("Site1", "identity", "/v3/auth/tokens", direct=True, headers={
            "X-Subject-Token": token["X-Auth-Token"]}).status == 404, "the token to expire")
    for each in (project, user, image):
        settled(lab, each)
    assert lab.ask("Site2", "image", f"/v2/images/{image}", direct=True).json["owner"] == local(lab, "Site2", "projects", name)["id"]
    run = as_tenant(lab, "Site2", name, "server list -f json")
    assert run.json == []


def test_what_is_alike_at_all_sites_is_one(lab):
    """Roles and projects of the copied database, the flavor that each site has: with `&` they are found by their names."""
    for path in ("/v3/roles?name=member", "/v3/projects?name=admin"):
        answer = lab.ask("Site1", "identity", path, scope=IDENTITY)
        assert len(next(rows for rows in answer.json.values() if isinstance(rows, list))) == 1, answer
    shown = lab.openstack("Site1", "flavor show -f json m1.tiny", COMPUTE).json
    assert (shown["id"], shown["ram"]) == ("1", 64)
    both = lab.ask("Site1", "compute", "/v2.1/flavors/1", scope=COMPUTE, headers={"Prefer": "cheops-sites"})
    assert both.status == 207 and list(json.loads(both.bytes)) == ["Site1", "Site2"]


def test_the_keystone_that_gave_the_token_judges_it(lab, tenant):
    """Commands with services of both sites; whichever runs elsewhere, he is there who he is by the ids of that site."""
    name, projects = tenant
    image, server = lab.make_image("Site2"), lab.name("vm")
    assert lab.ask("Site1", "image", "/v2/images", scope="{image: Site2}", headers=by(lab, "Site1", name)).status == 401
    run = as_tenant(lab, "Site1", name, f"server create {server} --image {image} --flavor m1.tiny --nic none --wait -f json",
                    "{identity: Site1, compute: Site1, image: Site2}")
    assert run.json["status"] == "ACTIVE"
    assert lab.servers("Site1")[server]["tenant_id"] == projects["Site1"]
    elsewhere = lab.name("vm")
    answer = lab.boot("Site1", image, "{identity: Site1, compute: Site2}", elsewhere, headers=by(lab, "Site1", name))
    assert answer.status == 202, answer
    assert lab.wait_active("Site2", elsewhere)["tenant_id"] == projects["Site2"]
    listed = lab.ask("Site2", "compute", "/v2.1/servers", headers=by(lab, "Site2", name))
    assert [each["name"] for each in listed.json["servers"]] == [elsewhere]


def test_what_he_has_at_both_sites(lab, tenant):
    """He says nothing of Keystones: what is done at the other site is judged by that of the site where he asked for it."""
    name, projects = tenant
    image = lab.name("image")
    made = lab.ask("Site1", "image", "/v2/images", "POST", scope=BOTH, headers=by(lab, "Site1", name),
                   body={"name": image, "disk_format": "raw", "container_format": "bare"})
    assert made.status == 201, made
    path = f"/v2/images/{made.json['id']}"
    stored = lab.ask("Site1", "image", path + "/file", "PUT", body=b"bytes",
                     headers={"Content-Type": "application/octet-stream", **by(lab, "Site1", name)})
    assert stored.status == 204, stored
    wait_active(lab, "Site2", made.json["id"])
    for site in lab.sites:
        assert lab.ask(site, "image", path, direct=True).json["owner"] == projects[site]
        assert lab.ask(site, "image", path, headers=by(lab, site, name)).status == 200  # it is private
    assert lab.ask("Site2", "image", path, "DELETE", headers=by(lab, "Site2", name)).status == 204
    wait_for(lambda: lab.ask("Site1", "image", path, direct=True).status == 404, "it to be gone from Site1")


def test_a_keystone_that_cannot_be_asked(lab, tenant):
    """He reads which one it is."""
    name, _ = tenant
    lab.tokens.pop(("Site1", name), None)  # Glance knows the old one for some time
    token = by(lab, "Site1", name)
    with lab.apart():
        for service, path in (("image", "/v2/images"), ("compute", "/v2.1/servers")):
            answer = lab.ask("Site2", service, path, scope="{identity: Site1}", headers=token)
            assert answer.status in (502, 503, 504), answer
            assert f"{service} called identity" in answer.bytes.decode() and "Site1" in answer.bytes.decode(), answer
    assert lab.ask("Site2", "image", "/v2/images", scope="{identity: Site1}", headers=token).status == 200


def test_the_check_of_what_is_set_up_once(lab):
    def check(*options):
        sites = [f"{site}=http://{lab.address(site)}:5000/v3" for site in lab.sites]
        return subprocess.run([COMMANDS / "run", "--lab", lab.id, "Site1", ROOT / "packaging/openstack/check-sites", *sites, *options],
                              capture_output=True, text=True, check=False)

    fine = check()
    assert fine.returncode == 0 and "2 sites: each takes the tokens of the others" in fine.stdout, fine
    wrong = check("--agent", "nobody")
    assert wrong.returncode == 1 and "Site2: nobody, the user of the agent, has no role admin in service" in wrong.stderr, wrong
