"""Servers over two sites: each site has one, of an image that is at both."""
from openstack_lab import wait_for
from test_replication import create, image, settled, wait_active

BOTH = "{compute: Site1 & Site2}"
NETWORK = "11111111-2222-4333-8444-555555555555"


def replicated_image(lab):
    made = create(lab, lab.file(), lab.name("debian"))
    wait_active(lab, "Site2", made)
    settled(lab, made)
    return made


def test_a_server_at_both(lab):
    """One for the user, two for Nova; what is done to it at one site is done at the other."""
    disk, name = replicated_image(lab), lab.name("vm")
    made = lab.openstack("Site1", f"server create {name} --image {disk} --flavor m1.tiny --nic none --wait -f json", BOTH).json
    assert made["status"] == "ACTIVE"
    ids = {site: lab.wait_made(site, name)["id"] for site in lab.sites}
    settled(lab, made["id"])
    assert len({*ids.values(), made["id"]}) == 3
    for site in lab.sites:
        assert lab.servers(site)[name]["image"]["id"] == disk
        assert [each["ID"] for each in lab.openstack(site, "server list -f json").json] == [made["id"]]
    listed = lab.openstack("Site2", "server list -f json", BOTH).json
    assert [(each["ID"], each["Name"]) for each in listed] == [(made["id"], name)]
    other = lab.name("vm")
    assert lab.openstack("Site2", f"server set --name {other} --property a=b {made['id']}").status == 0
    assert lab.openstack("Site1", f"server stop {made['id']}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: lab.servers(site).get(other, {}).get("status") == "SHUTOFF", f"{other} to stop at {site}")
        assert lab.servers(site)[other]["metadata"] == {"a": "b"}
    assert lab.openstack("Site2", f"server delete {made['id']}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: not lab.servers(site), f"{other} to be gone from {site}")


def test_a_server_while_a_site_is_away(lab):
    disk, name = replicated_image(lab), lab.name("vm")
    with lab.apart():
        made = lab.boot("Site1", disk, BOTH, name)
        assert made.status == 202, made
        lab.wait_made("Site1", name)
    lab.wait_made("Site2", name)
    settled(lab, made.json["server"]["id"])


def test_a_server_group(lab):
    """A server at both sites is in the group of its site. Nova says who is in it, by its own ids: users see theirs."""
    disk, name = replicated_image(lab), lab.name("vm")
    group = lab.openstack("Site1", f"server group create --policy anti-affinity -f json {lab.name('group')}", BOTH).json["id"]
    settled(lab, group)
    made = lab.ask("Site1", "compute", "/v2.1/servers", "POST", scope=BOTH, body={
        "server": {"name": name, "imageRef": disk, "flavorRef": "1", "networks": "none"},
        "os:scheduler_hints": {"group": group}})
    assert made.status == 202, made
    server = made.json["server"]["id"]
    for site in lab.sites:
        lab.wait_made(site, name)
    settled(lab, server)
    for site in lab.sites:
        shown = lab.ask(site, "compute", f"/v2.1/os-server-groups/{group}")
        assert (shown.json["server_group"]["id"], shown.json["server_group"]["members"]) == (group, [server])
    assert lab.openstack("Site2", f"server delete --wait {server}").status == 0
    assert lab.openstack("Site2", f"server group delete {group}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: lab.ask(site, "compute", "/v2.1/os-server-groups", direct=True).json["server_groups"] == [],
                 f"the group to be gone from {site}")


def test_an_image_that_servers_required(lab):
    """It was needed while they were made: deleting it is done, and they go on. Who is to know beforehand asks `cheops deps`."""
    disk, name = replicated_image(lab), lab.name("vm")
    server = lab.boot("Site1", disk, BOTH, name).json["server"]["id"]
    for site in lab.sites:
        lab.wait_made(site, name)
    settled(lab, server)
    for site in lab.sites:
        assert f"required by compute.server {server}" in lab.cheops(site, "deps", "why", disk).stdout
    assert lab.openstack("Site2", f"image delete {disk}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: image(lab, site, disk) is None, f"{disk} to be gone from {site}")
        assert lab.servers(site)[name]["status"] == "ACTIVE"
    refused = lab.boot("Site1", disk, BOTH)
    assert refused.status in (400, 404, 409), refused


def test_an_image_of_one_site_is_refused(lab):
    """For a server at both: before anything is made."""
    only = lab.make_image("Site1")
    refused = lab.boot("Site1", only, BOTH)
    assert refused.status == 409 and refused.header("Proxy-Status"), refused
    assert only in refused.json["conflictingRequest"]["message"], refused
    assert not lab.servers("Site1") and not lab.servers("Site2")


def test_a_flat_network_of_another_site(lab):
    """The example of RR-9336, 4: a server of Site1 cannot be on a network of Site2. Refused before Nova hears of it."""
    disk = lab.make_image("Site1")
    scope = "{compute: Site1, network: Site2}"
    says = "expects Site1/network, but the scope gives Site2/network"
    refused = lab.ask("Site1", "compute", "/v2.1/servers", "POST", scope=scope, body={"server": {
        "name": lab.name("vm"), "imageRef": disk, "flavorRef": "1", "networks": [{"uuid": NETWORK}]}})
    assert refused.status == 403 and f"server.create at Site1 {says}" in refused.json["forbidden"]["message"], refused
    lab.openstack("Site1", f"server create {lab.name('vm')} --image {disk} --flavor m1.tiny --nic net-id={NETWORK}", scope
                  ).refused("403", says)
    assert not lab.servers("Site1") and not lab.servers("Site2")
    assert lab.boot("Site1", disk, scope).status == 202  # without a network it uses none
