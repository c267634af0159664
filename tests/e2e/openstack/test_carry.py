"""How the scope follows Nova's calls: by the request id, which is what all other tests use, and by the token."""
import contextlib
import json

import yaml
from openstack_lab import wait_for

MIXED = "{compute: Site1, image: Site2}"
BY_TOKEN = ["append:X-Auth-Token", "append:X-Subject-Token"]
ID = "req-0123abcd-0123-4123-8123-0123456789ab"


@contextlib.contextmanager
def carried(lab, ways):
    """All agents carry the scope like this, for as long as it lasts."""
    before = {site: yaml.safe_load(lab.path(site, "agent.yaml").read_text(encoding="utf-8"))["services"] for site in lab.sites}
    for site, services in before.items():
        lab.configure(site, services={**services, "compute": {**services["compute"], "carry": ways}})
    try:
        yield
    finally:
        for site, services in before.items():
            lab.configure(site, services=services)


def image_logged(lab, site, image):
    """How often that Glance was asked for the image."""
    return lab.path(site, "log", "glance.log").read_text(encoding="utf-8").count(f"/v2/images/{image} ")


def test_by_the_token(lab):
    """Nova asks Keystone about the longer token: that agent takes the scope off, as those of other services do."""
    image = lab.make_image("Site2")
    with carried(lab, BY_TOKEN):
        name = lab.name("vm")
        assert lab.boot("Site1", image, MIXED, name).status == 202
        assert lab.wait_active("Site1", name)["image"]["id"] == image
        assert lab.boot("Site1", image).status == 400
        elsewhere = lab.name("vm")
        assert lab.boot("Site2", lab.make_image("Site1"), "{compute: Site2, image: Site1}", elsewhere).status == 202
        lab.wait_active("Site2", elsewhere)


def test_an_id_of_the_client_s_own(lab):
    """One that has the right form is used, and one that has not does no harm: Nova does not pass that on."""
    image = lab.make_image("Site2")
    name = lab.name("vm")
    assert lab.boot("Site1", image, MIXED, name, headers={"X-OpenStack-Request-ID": ID}).status == 202
    lab.wait_active("Site1", name)


def test_calls_after_the_answer(lab):
    """Shelving and unshelving: conductor and compute ask Glance long after Nova's API has answered, with the same scope. What is
    made of the server then is an image at the site that the scope names."""
    image, name = lab.make_image("Site2"), lab.name("vm")
    assert lab.boot("Site1", image, MIXED, name).status == 202
    server = lab.wait_active("Site1", name)["id"]

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


def test_nobody_else_s_calls_have_it(lab):
    """While boots with a scope are under way, those without stay at their site."""
    here, there = lab.make_image("Site1"), lab.make_image("Site2")
    before = image_logged(lab, "Site2", here)
    names = [lab.name("vm") for _ in range(6)]
    for number, name in enumerate(names):
        answer = lab.boot("Site1", *((there, MIXED) if number % 2 else (here, None)), name=name)
        assert answer.status == 202, answer
    for number, name in enumerate(names):
        assert lab.wait_active("Site1", name)["image"]["id"] == (there if number % 2 else here)
    assert image_logged(lab, "Site2", here) == before
