"""What a scope that follows Nova's calls makes possible, whatever it follows them by."""
import json

from openstack_lab import wait_for

MIXED = "{compute: Site1, image: Site2}"


def logged(lab, site, name, text):
    """How often a service of that site has logged it."""
    path = lab.path(site, "log", name)
    return path.read_text(encoding="utf-8").count(text) if path.exists() else 0


def boot(lab):
    """With an image of the other site; (name, id)."""
    image, name = lab.make_image("Site2"), lab.name("vm")
    assert lab.boot("Site1", image, MIXED, name).status == 202
    server = lab.wait_active("Site1", name)
    assert server["image"]["id"] == image
    assert lab.boot("Site1", image).status == 400
    return name, server["id"]


def shelve_and_unshelve(lab):
    """Conductor and compute ask Glance long after Nova's API has answered, with the same scope. What is made of the server then is an
    image at the site that the scope names."""
    name, server = boot(lab)

    def act(action):
        answer = lab.ask("Site1", "compute", f"/v2.1/servers/{server}/action", "POST", body=action, scope=MIXED)
        assert answer.status == 202, answer

    def wait(status):
        def there():
            found = lab.servers("Site1")[name]
            assert found["status"] != "ERROR", found
            return found["status"] == status and found["OS-EXT-STS:task_state"] is None
        wait_for(there, f"{name} to be {status}")

    act({"shelve": None})
    wait("SHELVED_OFFLOADED")
    shelved = f"{name}-shelved"
    listed = {site: json.loads(lab.ask(site, "image", f"/v2/images?name={shelved}", direct=True).bytes)["images"]
              for site in lab.sites}
    assert len(listed["Site2"]) == 1 and listed["Site1"] == [], listed
    act({"unshelve": None})
    wait("ACTIVE")
    assert lab.ask("Site2", "image", f"/v2/images/{listed['Site2'][0]['id']}", direct=True).status == 404


def ask_placement(lab):
    """The scheduler asks that of the scope, long after the answer. It knows other hosts, so Nova finds none."""
    image, name = lab.make_image("Site1"), lab.name("vm")
    before = {site: logged(lab, site, "placement.log", "GET /allocation_candidates") for site in lab.sites}
    assert lab.boot("Site1", image, "{compute: Site1, placement: Site2}", name).status == 202
    wait_for(lambda: lab.servers("Site1")[name]["status"] == "ERROR", f"{name} to be in ERROR")
    after = {site: logged(lab, site, "placement.log", "GET /allocation_candidates") for site in lab.sites}
    assert after["Site2"] > before["Site2"] and after["Site1"] == before["Site1"]


def ask_network(lab):
    """Nova asks for the ports of a server that it shows. Ports belong to their site (docs/ownership.md): that the agent refuses them
    is how it shows that it knows what the call is made for."""
    name = lab.name("vm")
    assert lab.boot("Site1", lab.make_image("Site1"), name=name).status == 202
    server = lab.wait_active("Site1", name)["id"]
    for scope, status in (("{compute: Site1, network: Site1}", 200), ("{compute: Site1, network: Site2}", 403)):
        shown = lab.ask("Site1", "compute", f"/v2.1/servers/{server}", scope=scope)
        assert shown.status == status, shown
    assert "expects Site1/network, but the scope gives Site2/network" in shown.bytes.decode(), shown
