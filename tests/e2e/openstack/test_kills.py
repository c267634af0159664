"""Parts of a site are killed and started again while users do all kinds of things, at both sites. What was acknowledged is there, once, and at
each site that it was asked for; what was refused is not there, unless an agent says of it that nobody knows. Then all of it works as before."""
import concurrent.futures
import http.client
import threading

import pytest
from openstack_lab import wait_for

PARTS = ("agent", "nova-api", "glance", "keystone", "rabbitmq", "mariadb")
AT_BOTH = "{identity: Site1 & Site2, image: Site1 & Site2, compute: Site1 & Site2}"
ROUNDS_MAX = 8  # of one user
NO_KEYSTONE = (401, 403)  # it is away; or has just started: the first of several at once was refused by Keystone itself, before it had read its rules


def undecided(lab):
    """Replicants of which an agent does not know whether something has happened, for people to decide on."""
    return {each["replicant"] for site in lab.sites
            for each in lab.ask(site, "api", "/cheops/v1/operations?state=in-doubt").json["operations"]}


class User:
    """Does one thing again and again, with another name each time, now at one site and now at the other."""

    sites = ("Site1",)

    def __init__(self, lab, image):
        self.lab, self.image = lab, image
        self.asked = {}  # name: (site, the answer; None: there was none)

    def do(self, site, name):
        raise NotImplementedError

    def once(self, site):
        name = self.lab.name(type(self).__name__.lower())
        try:
            answer = self.do(site, name)
        except (OSError, http.client.HTTPException):  # the agent that was asked has been killed
            answer = None
        self.asked[name] = site, answer
        return answer is not None and answer.status < 300

    def go_on(self, stop):
        for number in range(ROUNDS_MAX):
            if stop.wait(0.3):
                break
            self.once(self.sites[number % len(self.sites)])

    def acknowledged(self):
        return {name: answer for name, (_, answer) in self.asked.items() if answer is not None and answer.status < 300}

    def judge(self):
        """What was answered, and what there is."""
        for name, (site, answer) in self.asked.items():
            assert answer is None or answer.status < 300 or answer.status >= 500 or answer.status in NO_KEYSTONE, (name, site, answer)


class Lists(User):
    """Over both sites: item 4."""

    sites = ("Site1", "Site2")

    def do(self, site, name):
        answer = self.lab.ask(site, "compute", "/v2.1/servers", scope="{compute: Site1 & Site2}")
        if answer.status == 200:
            ids = [server["id"] for server in answer.json["servers"]]
            assert len(ids) == len(set(ids)), answer
        return answer


class Reads(User):
    """Of an image that both have, at whoever is there."""

    sites = ("Site2", "Site1")

    def do(self, site, name):
        return self.lab.ask(site, "image", f"/v2/images/{self.image}/file", scope="{image: Site1 | Site2}")


class Boot(User):
    """Commands 1 to 3."""

    scopes = (None, "{compute: Site1, image: Site1}", "{compute: Site1, image: Site2}")

    def do(self, site, name):
        return self.lab.boot(site, self.image, self.scopes[len(self.asked) % len(self.scopes)], name)

    def judge(self):
        super().judge()
        listed = self.lab.ask("Site1", "compute", "/v2.1/servers?all_tenants=1", direct=True).json["servers"]
        there = [server["name"] for server in listed]
        for name in self.asked:
            assert there.count(name) <= 1, name
        assert set(self.acknowledged()) <= set(there)


class Copied(User):
    """Makes something with `&`."""

    sites = ("Site1", "Site2")
    service, collection, kind = "", "", ""

    def body(self, name):
        raise NotImplementedError

    def do(self, site, name):
        return self.lab.ask(site, self.service, self.collection, "POST", body=self.body(name), scope=AT_BOTH)

    def at(self, site):
        """Names, as that site's service has them."""
        answer = self.lab.ask(site, self.service, f"{self.collection}?limit=1000", direct=True)
        return [each["name"] for each in answer.json[self.kind]]

    def is_there(self, site, name, answer):
        """Or an agent says that it cannot tell."""
        made = next((inside for inside in answer.json.values() if isinstance(inside, dict)), answer.json)["id"]
        return name in self.at(site) or made in undecided(self.lab)

    def judge(self):
        super().judge()
        for name, answer in self.acknowledged().items():
            for site in self.lab.sites:
                wait_for(lambda name=name, site=site, answer=answer: self.is_there(site, name, answer), f"{name} at {site}")
        for site in self.lab.sites:
            there = self.at(site)
            for name in self.asked:
                assert there.count(name) <= 1, (name, site)


class Image(Copied):
    """Item 3, but for the file."""

    service, collection, kind = "image", "/v2/images", "images"

    def body(self, name):
        return {"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public"}


class Server(Copied):
    """Item 5: of an image that is at both."""

    service, collection, kind = "compute", "/v2.1/servers", "servers"

    def body(self, name):
        return {"server": {"name": name, "imageRef": self.image, "flavorRef": "1", "networks": "none"}}


class Group(Copied):
    service, collection, kind = "compute", "/v2.1/os-server-groups", "server_groups"

    def body(self, name):
        return {"server_group": {"name": name, "policy": "affinity"}}


class Project(Copied):
    """Item 6."""

    service, collection, kind = "identity", "/v3/projects", "projects"

    def body(self, name):
        return {"project": {"name": name}}


@pytest.mark.parametrize("part", PARTS)
def test_everything_goes_on(lab, replicated_image, part):
    users = [kind(lab, replicated_image) for kind in (Lists, Reads, Boot, Image, Server, Group, Project)]
    for site in lab.sites:
        lab.token(site)
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(len(users)) as pool:
        running = [pool.submit(user.go_on, stop) for user in users]
        for site in lab.sites:
            with lab.without(site, part):
                stop.wait(1)
        stop.set()
        for each in running:
            each.result()
    for user in users:
        for site in user.sites:
            wait_for(lambda user=user, site=site: user.once(site),
                     lambda user=user, site=site: f"{type(user).__name__} at {site} to work again: {list(user.asked.values())[-1]}")
    for user in users:
        user.judge()
