"""A reliance that a partition cuts, in the lab: who relies on it is at risk until it heals, whatever is started anew meanwhile."""
import http.client
import json
import socket

import pytest
from wan_lab import API_PORT, BOUND_S, Lab, wait_for

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def lab():
    with Lab(3) as made:
        made.set("*", "*", delay="5ms")
        yield made


def make(lab, site, service, path, body, scope=None):
    headers = {**JSON, "Prefer": "wait=60", **({"Scope": scope} if scope else {})}
    answer = lab.ask(site, service, path, "POST", headers, json.dumps(body))
    assert answer.status == 201, answer
    return answer.json["id"]


def risks(lab, site, replicant):
    result = lab.cheops(site, "get", replicant, "-o", "json")
    assert result.returncode == 0, result
    return json.loads(result.stdout)["at_risk"]


class Events:
    """What an agent tells, from a change on."""

    def __init__(self, lab, site, last=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", timeout=BOUND_S)
        self.connection.sock = lab.socket(site, socket.AF_INET)
        self.connection.sock.connect(("127.0.0.1", API_PORT))
        self.connection.request("GET", "/cheops/v1/changes", headers={"Last-Event-ID": last} if last else {})
        self.response = self.connection.getresponse()

    def next(self):
        event = {}
        while line := self.response.readline().decode().rstrip("\n"):
            if not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value
        return event

    def until(self, name, replicant):
        seen = []
        while True:
            event = self.next()
            if "data" in event:
                seen.append((event["event"], json.loads(event["data"])["replicant"], event["id"]))
                if seen[-1][:2] == (name, replicant):
                    return seen

    def close(self):
        self.connection.close()


def test_at_risk_until_it_heals(lab):
    key = make(lab, "Site2", "image", "/secrets", {"name": "key", "data": "hush"})
    image = make(lab, "Site1", "image", "/images", {"name": "all"}, "Site1 & Site2 & Site3")
    relying = make(lab, "Site1", "compute", "/servers", {"name": "vm", "image": image, "secret": key},
                   "{compute: Site1 & Site3, image: Site2}")
    events = {site: Events(lab, site) for site in ("Site1", "Site3")}
    lab.cut("Site2", "*")
    for site, heard in events.items():
        heard.until("at-risk", relying)
        (risk,) = risks(lab, site, relying)
        assert (risk["local_id"], risk["why"], risk["sites"]) == (key, "unreachable", ["Site2"])
        heard.close()
    # It is known after a start, and told only once.
    lab.kill("Site1")
    lab.start_agent("Site1")
    lab.wait_shown(["Site1"], {"Site1": "present", "Site2": "unknown", "Site3": "present"})
    assert risks(lab, "Site1", relying)[0]["why"] == "unreachable" and lab.metric("Site1", "cheops_resources_at_risk") == 1
    last = {site: Events(lab, site) for site in ("Site1", "Site3")}
    lab.heal()
    told = {}
    for site, heard in last.items():
        told[site] = heard.until("safe", relying)
        assert [each for each in told[site] if each[0] == "at-risk"] == []
        assert risks(lab, site, relying) is None
        heard.close()
    # After another start nobody was heard of at first: that is no reason.
    lab.wait_present("Site1", "Site2", "Site3")
    lab.kill("Site1")
    lab.start_agent("Site1")
    lab.wait_present("Site1", "Site2", "Site3")
    pool = make(lab, "Site1", "network", "/pools", {"name": "later", "size": 1}, "Site1 & Site3")
    heard = Events(lab, "Site1", last=told["Site1"][-1][2])
    assert [each for each in heard.until("replicant", pool) if each[0] == "at-risk"] == []
    heard.close()
