"""Sharing, with the real client and the real services: commands 1 to 3 of "Geo-Distribute Cloud Applications at the Edge" (section 4),
and what happens to them when sites cannot reach each other.
"""
import concurrent.futures
import json
import re
import subprocess

import pytest
from openstack_lab import BOUND_S, CHEOPS

LOCAL = "{compute: Site1, image: Site1}"
MIXED = "{compute: Site1, image: Site2}"
# What an agent adds to an answer, and what differs from one answer to the next
OF_THE_AGENT = {"via", "proxy-status", "server-timing"}
OF_THE_MOMENT = {"date", "x-openstack-request-id", "x-compute-request-id", "x-iad-request-id", "connection", "transfer-encoding",
                 "content-length"}


def create(image, name):
    return f"server create --image {image} --flavor m1.tiny --nic none --wait -f json {name}"


def told(answer):
    """What of an answer has to be the same with and without an agent."""
    headers = sorted((name.lower(), value) for name, value in answer.headers
                     if name.lower() not in OF_THE_AGENT | OF_THE_MOMENT)
    return answer.status, headers, re.sub(rb"req-[0-9a-f-]{36}", b"req-", answer.bytes)


def questions(image, server):
    """(service, path, method, body) of all kinds: documents, lists, items, files, refusals."""
    return [
        ("identity", "/", "GET", None), ("identity", "/v3", "GET", None), ("identity", "/v3/projects", "GET", None),
        ("identity", "/v3/users?name=demo", "GET", None), ("identity", "/v3/users/nobody", "GET", None),
        ("identity", "/v3/auth/catalog", "GET", None), ("identity", "/v3/endpoints", "GET", None),
        ("image", "/", "GET", None), ("image", "/versions", "GET", None), ("image", "/v2/images", "GET", None),
        ("image", "/v2/images?limit=1&sort=name:asc", "GET", None), ("image", f"/v2/images/{image}", "GET", None),
        ("image", f"/v2/images/{image}/file", "GET", None), ("image", "/v2/images/none", "GET", None),
        ("image", "/v2/images", "POST", {"disk_format": "no-such"}), ("image", "/v2/schemas/image", "GET", None),
        ("compute", "/", "GET", None), ("compute", "/v2.1/", "GET", None), ("compute", "/v2.1/servers", "GET", None),
        ("compute", "/v2.1/servers/detail", "GET", None), ("compute", f"/v2.1/servers/{server}", "GET", None),
        ("compute", "/v2.1/flavors/detail", "GET", None), ("compute", "/v2.1/flavors/1", "GET", None),
        ("compute", "/v2.1/os-hypervisors/detail", "GET", None), ("compute", "/v2.1/limits", "GET", None),
        ("compute", "/v2.1/servers/none", "GET", None), ("compute", "/v2.1/servers", "POST", {"server": {}}),
        ("compute", "/v2.1/servers/none/action", "POST", {"reboot": {"type": "SOFT"}}),
        ("placement", "/", "GET", None), ("placement", "/resource_providers", "GET", None),
        ("placement", "/resource_providers/none", "GET", None),
        ("network", "/", "GET", None), ("network", "/v2.0/ports", "GET", None)]


def compare(lab, scope):
    image = lab.make_image("Site1")
    server = lab.boot("Site1", image, name=lab.name("same"))
    assert server.status == 202, server
    server = server.json["server"]["id"]
    lab.wait_active("Site1", list(lab.servers("Site1"))[0])
    for service, path, method, body in questions(image, server):
        direct = told(lab.ask("Site1", service, path, method, body=body, direct=True))
        through = told(lab.ask("Site1", service, path, method, body=body, scope=scope))
        assert through == direct, f"{method} {path} of {service}, with the scope {scope}"


@pytest.mark.parametrize("scope", [None, LOCAL], ids=["no scope", "all local"])
@pytest.mark.parametrize("cut", [False, True], ids=["together", "cut off"])
def test_answers_are_those_of_openstack_alone(lab, scope, cut):
    if not cut:
        compare(lab, scope)
        return
    with lab.apart():
        compare(lab, scope)


@pytest.mark.parametrize("scope", [None, LOCAL], ids=["command 1", "command 2"])
def test_a_local_boot(lab, scope):
    """Commands 1 and 2, together and cut off."""
    image, name = lab.name("debian"), lab.name("vm")
    made = lab.openstack("Site1", f"image create --disk-format raw --container-format bare --file {lab.file()} -f json {image}",
                         scope).json
    assert lab.openstack("Site1", create(image, name), scope).json["status"] == "ACTIVE"
    with lab.apart():
        other = lab.name("vm")
        server = lab.openstack("Site1", create(image, other), scope).json
        assert server["status"] == "ACTIVE" and server["image"] == f"{image} ({made['id']})"
        listed = lab.openstack("Site1", "server list -f json", scope).json
    assert {(known["Name"], known["Status"], known["Image"]) for known in listed} >= {(name, "ACTIVE", image), (other, "ACTIVE", image)}
    assert set(lab.servers("Site2")) == set()


def test_a_boot_with_an_image_of_another_site(lab):
    """Command 3."""
    image, name = lab.name("debian"), lab.name("vm")
    there = lab.make_image("Site2", image)
    server = lab.openstack("Site1", create(image, name), MIXED).json
    assert server["status"] == "ACTIVE" and server["image"] == f"{image} ({there})"
    assert set(lab.servers("Site1")) == {name} and set(lab.servers("Site2")) == set()
    assert lab.ask("Site1", "image", f"/v2/images/{there}", direct=True).status == 404


@pytest.mark.parametrize("how", ["--os-scope", "OS_SCOPE"])
def test_other_ways_to_say_the_scope(lab, how):
    image, name = lab.name("debian"), lab.name("vm")
    lab.make_image("Site2", image)
    if how == "OS_SCOPE":
        run = lab.openstack("Site1", create(image, name), env={"OS_SCOPE": MIXED})
    else:
        run = lab.openstack("Site1", [how, MIXED, *create(image, name).split()])
    assert run.json["status"] == "ACTIVE"


def test_an_option_outweighs_the_environment(lab):
    image = lab.name("debian")
    lab.make_image("Site2", image)
    run = lab.openstack("Site1", create(image, lab.name("vm")), LOCAL, env={"OS_SCOPE": MIXED})
    run.refused(f"No Image found for {image}")


def test_without_the_scope_it_is_refused(lab):
    """By the client, which does not find the name, and by Nova, which does not find the id."""
    image = lab.name("debian")
    there = lab.make_image("Site2", image)
    lab.openstack("Site1", create(image, lab.name("vm"))).refused(f"No Image found for {image}")
    for scope in (None, LOCAL):
        answer = lab.boot("Site1", there, scope)
        assert answer.status == 400 and "Can not find requested image" in answer.bytes.decode(), answer
    assert set(lab.servers("Site1")) == set()


def test_a_scope_that_names_nobody(lab):
    lab.openstack("Site1", "server list", "{compute: Sit2}").refused("unknown site `Sit2`; did you mean `Site2`?")
    lab.openstack("Site1", "server list", "{compute: }").refused("The scope cannot be followed")


def test_all_elsewhere(lab):
    """Everything at the other site, with a token of this one."""
    name = lab.name("vm")
    image = lab.name("debian")
    lab.make_image("Site2", image)
    scope = "{compute: Site2, image: Site2}"
    assert lab.openstack("Site1", create(image, name), scope).json["status"] == "ACTIVE"
    assert set(lab.servers("Site2")) == {name} and set(lab.servers("Site1")) == set()
    run = lab.openstack("Site1", f"server delete --wait {name}", scope)
    assert run.status == 0 and set(lab.servers("Site2")) == set(), run


def test_as_somebody_who_is_no_administrator(lab):
    image, name = lab.name("debian"), lab.name("vm")
    lab.make_image("Site2", image)
    assert lab.openstack("Site1", create(image, name), MIXED, user="demo").json["status"] == "ACTIVE"


def test_twenty_boots_at_once(lab):
    """Each with one of four scopes. The image has the same name at both sites, and another id: who is sent to the wrong site gets the
    wrong one, or none."""
    image = lab.name("debian")
    ids = {site: lab.make_image(site, image) for site in lab.sites}
    wanted, expected = [], {}
    for number in range(20):
        compute, store = lab.sites[number % 2], lab.sites[number // 2 % 2]
        name = lab.name("vm")
        wanted.append((lab.sites[number // 4 % 2], create(image, name), f"{{compute: {compute}, image: {store}}}"))
        expected[name] = (compute, ids[store])
    for run in lab.all_at_once(wanted):
        assert run.json["status"] == "ACTIVE", run
    found = {name: (site, server["image"]["id"]) for site in lab.sites for name, server in lab.servers(site).items()}
    assert found == expected


def test_scopes_that_are_right_and_wrong_at_once(lab):
    """Twenty by the API, half of them with an image that is not where their scope says: those are refused, the others are not."""
    ids = {site: lab.make_image(site) for site in lab.sites}
    wanted = []
    for number in range(20):
        store, said = lab.sites[number % 2], lab.sites[number // 2 % 2]
        wanted.append((lab.name("vm"), store, said))

    def boot(one):
        name, store, said = one
        return lab.boot("Site1", ids[store], f"{{compute: Site1, image: {said}}}", name).status

    lab.token("Site1")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        statuses = list(pool.map(boot, wanted))
    assert statuses == [202 if store == said else 400 for _, store, said in wanted]
    for name, store, said in wanted:
        if store == said:
            assert lab.wait_active("Site1", name)["image"]["id"] == ids[store]
    assert len(lab.servers("Site1")) == statuses.count(202)


def test_the_link_is_cut(lab):
    """An error that names the site, and nothing that would have to be cleaned up."""
    image = lab.name("debian")
    there = lab.make_image("Site2", image)
    assert lab.openstack("Site1", create(image, lab.name("vm")), MIXED).json["status"] == "ACTIVE"  # connections are open
    before = set(lab.servers("Site1"))
    with lab.apart():
        lab.openstack("Site1", create(image, lab.name("vm")), MIXED).refused("Site2")
        lab.openstack("Site1", "server list", "{compute: Site2}").refused("Site2")
        asked = lab.boot("Site1", there, MIXED)  # without the client, which would have asked for the image first
        told = asked.json["computeFault"]
        assert asked.status in (502, 504) and told["code"] == asked.status, asked
        assert "compute called image" in told["message"] and "Site2" in told["message"], asked
        assert set(lab.servers("Site1")) == before
        usage = lab.ask("Site1", "placement", "/resource_providers", direct=True).json["resource_providers"][0]["uuid"]
        held = lab.ask("Site1", "placement", f"/resource_providers/{usage}/allocations", direct=True).json["allocations"]
        assert len(held) == len(before)
    name = lab.name("vm")
    assert lab.openstack("Site1", create(image, name), MIXED).json["status"] == "ACTIVE"
    assert set(lab.servers("Site1")) == {*before, name}


def test_one_list_of_two_sites(lab):
    names = {}
    for site in lab.sites:
        names[site] = lab.name("vm")
        assert lab.boot(site, lab.make_image(site), name=names[site]).status == 202
        lab.wait_active(site, names[site])
    listed = lab.openstack("Site1", "server list -f json", "{compute: Site1 & Site2}").json
    assert {known["Name"]: known["Status"] for known in listed} == {name: "ACTIVE" for name in names.values()}
    with lab.apart():
        run = lab.openstack("Site1", "server list -f json", "{compute: Site1 & Site2}")
        assert [known["Name"] for known in run.json] == [names["Site1"]]
        assert "Site2" in run.err and "not whole" in run.err


def test_lists_of_images(lab):
    lab.delete_images()
    names = {site: lab.name("image") for site in lab.sites}
    for site, name in names.items():
        lab.make_image(site, name)
    listed = lab.openstack("Site2", "image list -f json", "{image: Site1 & Site2}").json
    assert set(names.values()) <= {known["Name"] for known in listed}
    shown = lab.openstack("Site2", f"image show -f json {names['Site1']}", "{image: Site1}").json
    assert shown["name"] == names["Site1"]


def test_a_list_of_more_than_one_page(lab):
    """Glance gives 25 images, unless it is asked for more: it is, of several sites. At one site the client follows the pages as ever."""
    lab.delete_images()
    names = {lab.name("image") for _ in range(27)}
    for name in names:
        assert lab.ask("Site2", "image", "/v2/images", "POST", body={"name": name}).status == 201
    here = lab.name("image")
    lab.make_image("Site1", here)
    both = lab.openstack("Site2", "image list -f json", "{image: Site2 & Site1}")
    listed = {known["Name"] for known in both.json}
    assert listed >= names | {here} and "more-pages" not in both.err
    assert {known["Name"] for known in lab.openstack("Site1", "image list -f json", "{image: Site2}").json} == names
    lab.delete_images()


def test_cheops_openstack(lab):
    """The same for those who cannot install the plugin."""
    image, name = lab.name("debian"), lab.name("vm")
    there = lab.make_image("Site2", image)
    words, env = lab.command("Site1", create(image, name), plugin=False)
    at = words.index("openstack")
    words[at:at + 1] = [str(CHEOPS), "openstack", "--scope", MIXED]
    run = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=BOUND_S)
    assert run.returncode == 0 and json.loads(run.stdout)["image"] == f"{image} ({there})", run


def test_the_plugin_is_not_needed(lab):
    """Without it the client is as it was; and the header alone does."""
    run = lab.openstack("Site1", "server list -f json", plugin=False)
    assert run.json == []
    lab.openstack("Site1", "server list", "{compute: Site1}", plugin=False).refused("unrecognized arguments")
    name = lab.name("image")
    lab.make_image("Site2", name)
    answer = lab.ask("Site1", "image", f"/v2/images?name={name}", scope="{image: Site2}")
    assert [image["name"] for image in json.loads(answer.bytes)["images"]] == [name]
