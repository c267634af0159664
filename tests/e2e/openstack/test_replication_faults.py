"""Parts of a site are killed and started again in the middle of what is done at two: nothing is lost, nothing is made twice."""
import subprocess

import pytest
from openstack_lab import BOUND_S, wait_for
from test_replication import BOTH, create, image, settled, wait_active

SERVERS_AT_BOTH = "{compute: Site1 & Site2}"


def named(lab, site, name):
    """Ids of images of that name, as that site's Glance has them."""
    return [each["id"] for each in lab.ask(site, "image", f"/v2/images?name={name}", direct=True).json["images"]]


@pytest.mark.parametrize("part", ["glance", "keystone", "mariadb", "rabbitmq", "agent"])
def test_the_other_site_lacks_a_part(lab, part):
    """Command 4, and a change; then what was killed comes back, and gets both."""
    name, path = lab.name("debian"), lab.file(200000)
    with lab.without("Site2", part):
        made = create(lab, path, lab.name("debian"))
        assert lab.openstack("Site1", f"image set {made} --name {name} --property os_distro=debian").status == 0
    there = wait_active(lab, "Site2", made)
    settled(lab, made)
    there = image(lab, "Site2", made)
    assert (there["name"], there["os_distro"], there["size"]) == (name, "debian", 200000)
    assert named(lab, "Site2", name) == [made]
    assert lab.openstack("Site2", f"image delete {made}").status == 0
    wait_for(lambda: image(lab, "Site1", made) is None, f"{made} to be gone from Site1")


@pytest.mark.parametrize("part", ["glance", "keystone", "mariadb", "agent"])
def test_this_site_lacks_a_part(lab, part):
    """The command fails, as it would without Cheops; what there is, is at both sites or at none. Then it works."""
    name, path = lab.name("debian"), lab.file(200000)
    with lab.without("Site1", part):
        run = lab.openstack("Site1", f"image create {name} --disk-format raw --container-format bare --file {path}", BOTH)
        assert run.status != 0, run
    assert named(lab, "Site1", name) == named(lab, "Site2", name) == []
    made = create(lab, path, name)
    wait_active(lab, "Site2", made)
    settled(lab, made)
    assert named(lab, "Site1", name) == named(lab, "Site2", name) == [made]


@pytest.mark.parametrize("site", ["Site1", "Site2"])
def test_an_agent_is_killed_while_the_file_is_on_its_way(lab, site):
    """The user has his answer; the other site has a part of the file, or nothing yet."""
    path = lab.file(96 << 20)
    lab.set("Site1", "Site2", rate="100mbit")
    try:
        made = create(lab, path, lab.name("debian"))
        blobs = lab.path("Site2", "state", "store", "blobs")
        wait_for(lambda: any(each.name.endswith(".part") for each in blobs.iterdir()), "a part of the file at Site2")
        with lab.without(site, "agent"):
            pass
    finally:
        lab.set("Site1", "Site2", rate="unlimited")
    assert wait_active(lab, "Site2", made)["checksum"] == image(lab, "Site1", made)["checksum"]
    settled(lab, made)


@pytest.mark.parametrize("part", ["agent", "mariadb", "rabbitmq"])
def test_a_part_is_killed_while_the_user_uploads(lab, part):
    """The client may be told that it failed: then it deletes the image, if it can. It is at both sites alike, with or without its file, and can be
    deleted; or at neither."""
    path, name = lab.file(96 << 20), lab.name("debian")
    command, env = lab.command("Site1", f"image create {name} --disk-format raw --container-format bare --file {path}", BOTH)
    client = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    made = wait_for(lambda: named(lab, "Site1", name), "the record of the image")[0]
    with lab.without("Site1", part):
        pass
    told = client.communicate(timeout=BOUND_S)
    settled(lab, made)

    def statuses():
        return {there and there["status"] for there in (image(lab, site, made) for site in lab.sites)}

    wait_for(lambda: statuses() in ({None}, {"queued"}, {"active"}), lambda: f"the same at both: {statuses()}")
    if statuses() == {None}:
        assert client.returncode != 0, told
        return
    assert lab.openstack("Site1", f"image delete {made}").status == 0
    for site in lab.sites:
        wait_for(lambda site=site: image(lab, site, made) is None, f"{made} to be gone from {site}")


@pytest.mark.parametrize("part", ["nova-api", "rabbitmq", "agent"])
def test_a_server_at_both_while_the_other_site_lacks_a_part(lab, part):
    """It gets its server when that is back, and one only."""
    disk = create(lab, lab.file(), lab.name("debian"))
    wait_active(lab, "Site2", disk)
    settled(lab, disk)
    name = lab.name("vm")
    with lab.without("Site2", part):
        made = lab.boot("Site1", disk, SERVERS_AT_BOTH, name)
        assert made.status == 202, made
        lab.wait_active("Site1", name)
    lab.wait_made("Site2", name)
    settled(lab, made.json["server"]["id"])
    assert list(lab.servers("Site2")) == [name]


def test_a_server_at_both_while_the_other_site_lacks_its_database(lab):
    """Nova fails in the middle of it, and says no more: whether there is a server is in doubt, since their names are not unique. Somebody who has
    looked has it run again."""
    disk = create(lab, lab.file(), lab.name("debian"))
    wait_active(lab, "Site2", disk)
    settled(lab, disk)
    name = lab.name("vm")

    def doubtful():
        asked = f"/cheops/v1/operations?replicant={made.json['server']['id']}&state=in-doubt"
        return [each["id"] for each in lab.ask("Site2", "api", asked).json["operations"]]

    with lab.without("Site2", "mariadb"):
        made = lab.boot("Site1", disk, SERVERS_AT_BOTH, name)
        assert made.status == 202, made
        lab.wait_active("Site1", name)
        operation = wait_for(doubtful, "Site2 to be in doubt")[0]
    assert lab.servers("Site2") == {}
    assert lab.cheops("Site2", "ops", "retry", operation).returncode == 0
    lab.wait_made("Site2", name)
    settled(lab, made.json["server"]["id"])
