"""A new tenant is made at Site1, with `&`, and works at Site2: a project, a user, what the user may do, a flavor. Keystone makes its ids
itself: each site has its own, and references to them are each site's own as well."""
import json

from openstack_lab import wait_for
from test_replication import create, settled, wait_active

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


def as_tenant(lab, site, name, words):
    return lab.openstack(site, [f"--os-username={name}", f"--os-project-name={name}", "--os-password=secret", *words.split()])


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
    """And administrators' tokens do not matter to it: Keystone takes none that has expired, so the agents are users themselves."""
    with lab.apart():
        name, project, user = make_tenant(lab)
        assert local(lab, "Site2", "users", name) is None
    settled(lab, project)
    settled(lab, user)
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
