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


def verified(lab, site, wanted):
    """All copies are said to be the same."""
    def same():
        found = lab.cheops(site, "get", wanted, "--verify")
        assert found.returncode in (0, 1), found.stdout  # 1: not settled yet
        return found.returncode == 0

    wait_for(same, f"the copies of {wanted} to be compared")


def test_copies_are_the_same(lab):
    """Whatever is in them: the ids of a replicated flavor, links that each Nova builds, which lead to the agent with the ids that users know."""
    disk, name = replicated_image(lab), lab.name("vm")
    flavor = lab.openstack("Site1", f"flavor create {lab.name('m1')} --ram 64 --disk 1 --vcpus 1 -f json", BOTH).json["id"]
    settled(lab, flavor)
    made = lab.ask("Site1", "compute", "/v2.1/servers", "POST", scope=BOTH, headers={"OpenStack-API-Version": "compute 2.37"}, body={
        "server": {"name": name, "imageRef": disk, "flavorRef": flavor, "networks": "none"}})
    assert made.status == 202, made
    server = made.json["server"]["id"]
    for site in lab.sites:
        lab.wait_made(site, name)
    settled(lab, server)
    own = f"http://{lab.address('Site1')}:8774"
    links = {f"{own}/v2.1/servers/{server}", f"{own}/servers/{server}"}
    assert {each["href"] for each in made.json["server"]["links"]} == links and made.header("Location") in links
    for site in lab.sites:
        front = f"http://{lab.address(site)}:8774"
        shown = lab.ask(site, "compute", f"/v2.1/servers/{server}", headers={"OpenStack-API-Version": "compute 2.37"}).json["server"]
        assert shown["flavor"] == {"id": flavor, "links": [{"rel": "bookmark", "href": f"{front}/flavors/{flavor}"}]}
        for wanted in (server, flavor, disk):
            verified(lab, site, wanted)
    assert lab.openstack("Site2", f"server delete --wait {server}").status == 0
    assert lab.openstack("Site2", f"flavor delete {flavor}").status == 0
    settled(lab, flavor)


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
        listed = lab.openstack(site, "server group list --long -f json").json
        assert [(each["ID"], each["Members"]) for each in listed] == [(group, [server])]
        verified(lab, site, group)
    # Nova lets a group go with servers in it: they stay, and are in none.
    assert lab.openstack("Site2", f"server group delete {group}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: lab.ask(site, "compute", "/v2.1/os-server-groups", direct=True).json["server_groups"] == [],
                 f"the group to be gone from {site}")
        assert lab.servers(site)[name]["status"] == "ACTIVE"
        assert lab.openstack(site, "server group list -f json").json == []
        assert lab.ask(site, "compute", f"/v2.1/servers/{server}").json["server"]["server_groups"] == []
    settled(lab, group)
    verified(lab, "Site1", server)
    late = lab.ask("Site1", "compute", "/v2.1/servers", "POST", scope=BOTH, body={
        "server": {"name": lab.name("vm"), "imageRef": disk, "flavorRef": "1", "networks": "none"},
        "os:scheduler_hints": {"group": group}})
    assert late.status == 400 and group in late.json["badRequest"]["message"], late
    assert lab.openstack("Site2", f"server delete --wait {server}").status == 0


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
    settled(lab, disk)
    for site in lab.sites:
        assert f"requires image.image {disk}  gone" in lab.cheops(site, "deps", "tree", server).stdout
        assert f"required by compute.server {server}" in lab.cheops(site, "deps", "why", disk).stdout

        def refused(site=site):
            answer = lab.boot(site, disk, BOTH)
            assert answer.status in (400, 409), answer  # Nova's own, until all sites know of each other that it is gone
            return answer if answer.status == 409 else None

        says = wait_for(refused, f"{disk} to be gone for good").json["conflictingRequest"]["message"]
        assert f"requires image.image `{disk}`, which was deleted" in says
    rebuilt = lab.ask("Site2", "compute", f"/v2.1/servers/{server}/action", "POST", body={"rebuild": {"imageRef": disk}})
    assert rebuilt.status == 400 and "image" in rebuilt.json["badRequest"]["message"], rebuilt
    for site in lab.sites:
        assert list(lab.servers(site)) == [name] and lab.servers(site)[name]["status"] == "ACTIVE"


def test_an_image_that_is_deleted_before_a_site_could_use_it(lab):
    """Site2 is to make a server of it, and to delete it. It does so in this order, also if Nova there is not up yet."""
    disk, name = replicated_image(lab), lab.name("vm")
    with lab.apart():
        server = lab.boot("Site1", disk, BOTH, name).json["server"]["id"]
        lab.wait_made("Site1", name)
        deleted = lab.ask("Site1", "image", f"/v2/images/{disk}", "DELETE")
        assert deleted.status == 204, deleted
        lab.kill_part("Site2", "nova-api")
    try:
        waits = f"waits for {server}"
        wait_for(lambda: waits in lab.cheops("Site2", "ops", "get", deleted.header("Cheops-Operation")).stdout,
                 "Site2 to say what the delete waits for")
        assert image(lab, "Site2", disk) and not image(lab, "Site1", disk)
    finally:
        lab.start_part("Site2", "nova-api")
    lab.wait_made("Site2", name)
    wait_for(lambda: image(lab, "Site2", disk) is None, f"{disk} to be gone from Site2")
    settled(lab, server)
    settled(lab, disk)


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
