"""Services that close connections when they like, that are killed, and sites that are away: what a user sees of it."""
import concurrent.futures
import http.client
import json

import pytest
from openstack_lab import wait_for

MIXED = "{compute: Site1, image: Site2}"


def test_abrupt_closes_are_not_seen(lab):
    """The web server of Keystone and Placement closes after each answer, without saying so before, and gives no length."""
    plain = lab.ask("Site1", "identity", "/v3", direct=True)
    assert plain.header("Content-Length") is None and plain.header("Transfer-Encoding") is None
    lab.token("Site1")

    def ask(number):
        service, path = (("identity", "/v3/projects"), ("placement", "/resource_providers"), ("identity", "/v3"))[number % 3]
        site = lab.sites[number % 2]
        return lab.ask("Site1", service, path, scope=f"{{{service}: {site}}}").status

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(240))) == {200}


def test_a_stand_in_for_an_image_service(lab):
    """`;` and `|` on reads: whoever is there, also while one of them is killed."""
    name = lab.name("image")
    for site in lab.sites:
        lab.make_image(site, name)
    scopes = ("{image: Site2; Site1}", "{image: Site1 | Site2}", "{image: around(Site1, 1s)}")
    for scope in scopes:
        assert lab.openstack("Site1", f"image show -f json {name}", scope).json["name"] == name
    for gone in lab.sites:
        lab.kill_part(gone, "glance")
        try:
            for scope in scopes:
                shown = lab.openstack("Site1", f"image show -f json {name}", scope)
                assert shown.json["name"] == name, (gone, scope)
            refused = lab.openstack("Site1", f"image show {name}", f"{{image: {gone}}}")
            refused.refused(gone)
        finally:
            lab.start_part(gone, "glance")


def test_services_are_killed_and_started_again(lab):
    """One by one; after each a boot with an image of the other site works as before."""
    image = lab.make_image("Site2")
    for site, part in (("Site1", "keystone"), ("Site2", "keystone"), ("Site2", "glance"), ("Site1", "placement"),
                       ("Site1", "nova-api")):
        lab.restart_part(site, part)
        name = lab.name("vm")
        answer = lab.boot("Site1", image, MIXED, name)
        assert answer.status == 202, (site, part, answer)
        lab.wait_active("Site1", name)


def test_agents_are_killed_and_started_again(lab):
    """In the middle of boots: each boot is made or refused, and what was refused is not there. Services of one site find each other at
    its agent, so Nova may have to give up on what it has accepted while that is away; it says so, and nothing hangs."""
    image = lab.make_image("Site2")
    for site, ends in (("Site2", {"ACTIVE"}), ("Site1", {"ACTIVE", "ERROR"})):
        names = [lab.name("vm") for _ in range(8)]
        lab.token("Site1")

        def boot(name):
            try:
                return lab.boot("Site1", image, MIXED, name).status
            except (OSError, http.client.HTTPException):  # the agent of this site was killed: nobody answers
                return None

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(boot, name) for name in names]
            running[1].result()
            lab.kill(site)
            statuses = [one.result() for one in running]
        lab.start_agent(site)
        lab.wait_present()
        assert statuses[1] == 202 and all(status in (202, 400, None) or status >= 500 for status in statuses), statuses
        wait_for(lambda: all(server["status"] != "BUILD" for server in lab.servers("Site1").values()), "boots to end")
        there = lab.servers("Site1")
        for name, status in zip(names, statuses):
            if status == 202:
                assert there[name]["status"] in ends, there[name]
            elif status is not None:
                assert name not in there, (name, status)
        after = lab.name("vm")
        assert lab.boot("Site1", image, MIXED, after).status == 202
        lab.wait_active("Site1", after)


@pytest.mark.parametrize("part", ["rabbitmq", "mariadb"])
def test_what_nova_needs_is_killed_in_the_middle_of_boots(lab, part):
    """Its broker, its database. Nova waits for the one and fails without the other; each boot has an answer of Nova's or of the agent's own,
    and none comes twice. Then boots work as before."""
    image, names = lab.make_image("Site2"), [lab.name("vm") for _ in range(6)]
    lab.token("Site1")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = [pool.submit(lab.boot, "Site1", image, MIXED, name) for name in names]
        assert running[1].result().status == 202
        with lab.without("Site1", part):
            pass
        answers = [one.result() for one in running]
    for answer in answers:
        assert answer.status == 202 or answer.status >= 500, answer
        assert answer.status == 202 or answer.json, answer  # in the form of Nova's errors
    listed = lab.ask("Site1", "compute", "/v2.1/servers?all_tenants=1", direct=True).json["servers"]
    there = [server["name"] for server in listed]
    assert len(set(there)) == len(there)
    for name, answer in zip(names, answers):
        assert answer.status != 202 or name in there

    def works():
        """Nova's services may still be on their way back to each other, and some have to find out first that a connection is gone."""
        name = lab.name("vm")
        if lab.boot("Site1", image, MIXED, name).status != 202:
            return False
        wait_for(lambda: lab.servers("Site1")[name]["status"] != "BUILD", f"{name} to be made")
        return lab.servers("Site1")[name]["status"] == "ACTIVE"

    wait_for(works, "boots to work again")


def test_a_large_image_passes(lab):
    """Up and down, of another site, by the real client: 64 MiB, in one piece with its length, and in chunks."""
    path = lab.file(64 << 20)
    name = lab.name("image")
    made = lab.openstack("Site1", f"image create --disk-format raw --container-format bare --file {path} -f json {name}",
                         "{image: Site2}").json
    shown = lab.openstack("Site2", f"image show -f json {made['id']}").json
    assert (shown["status"], shown["size"]) == ("active", 64 << 20)
    assert json.loads(lab.ask("Site1", "image", f"/v2/images?name={name}", direct=True).bytes)["images"] == []
    copy = path.with_suffix(".copy")
    saved = lab.openstack("Site1", f"image save --file {copy} {made['id']}", "{image: Site2}")
    assert saved.status == 0, saved
    assert copy.read_bytes() == path.read_bytes()
