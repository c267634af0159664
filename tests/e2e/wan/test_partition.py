"""A network that falls apart, and comes together again. Nobody says of a site that it is gone, only that it is not heard."""
import datetime
import re

import pytest
from wan_lab import Lab, wait_for

LEFT, RIGHT = ["Site1", "Site2"], ["Site3", "Site4", "Site5"]  # the authority is in the smaller half
LOST = "is lost: cut off or dead"


@pytest.fixture(scope="module")
def lab():
    with Lab(5) as made:
        yield made


def whoami(lab, site, scope):
    return lab.ask(site, "compute", "/whoami", headers={"Scope": scope})


def write(lab, site):
    """Makes a server, for which compute asks image and network of the same site."""
    json = {"Content-Type": "application/json"}
    image = lab.ask(site, "image", "/images", "POST", json, '{"name": "debian"}')
    assert image.status == 201, image
    server = lab.ask(site, "compute", "/servers", "POST", json,
                     f'{{"name": "vm", "image": "{image.json["id"]}", "network": true}}')
    assert server.status == 201, server
    return server.json["id"]


def states(lab, site):
    return {name: (about["id"], about["state"]) for name, about in lab.view(site).items()}


def wait_probes(lab, sites, rounds):
    """Until each of these has probed every other so many times, about."""
    least = {site: lab.metric(site, "cheops_gossip_probes_total") + rounds * (len(lab.sites) - 1) for site in sites}
    for site in sites:
        lab.wait_metric(site, "cheops_gossip_probes_total", least[site])


def test_one_direction_fails_and_nobody_flaps(lab):
    """Site1 hears Site2, but not the other way round: others answer for both."""
    before = {site: len(lab.log(site)) for site in lab.sites}
    lab.cut("Site1", "Site2", one_way=True)
    wait_probes(lab, lab.sites, 6)
    assert lab.stats("Site1", "Site2")["cut"] > 0
    lab.wait_present()
    for site in lab.sites:
        assert not lab.events(site, LOST, before[site]), site
        suspected = lab.events(site, "does not answer", before[site])
        assert all(re.search("site=Site[12]$", line) for line in suspected), suspected  # third parties are left alone
    assert whoami(lab, "Site3", "Site1").json["site"] == "Site1"
    assert whoami(lab, "Site3", "Site2").json["site"] == "Site2"
    lab.heal()


def test_two_halves(lab):
    """Each is unknown to the other, and never absent; each goes on by itself. What the authority said in one half reaches
    the other half afterwards."""
    before = {site: len(lab.log(site)) for site in lab.sites}
    begin = lab.wait_calm()
    lab.isolate(*LEFT)
    # One that is cut off on its own side of the network works on, from the first moment.
    made = {site: write(lab, site) for site in ("Site1", "Site3")}
    for site, server in made.items():
        assert lab.ask(site, "compute", f"/servers/{server}").status == 200
    assert whoami(lab, "Site3", "Site5").json["site"] == "Site5"
    for half, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
        lab.wait_shown(half, {**{site: "present" for site in half}, **{site: "unknown" for site in other}})
        for site in half:
            for lost in other:
                since = datetime.datetime.fromisoformat(lab.view(site)[lost]["since"].replace("Z", "+00:00"))
                assert begin <= since <= datetime.datetime.now(datetime.timezone.utc)
            table = lab.cheops(site, "sites").stdout
            assert len(re.findall("unknown since ", table)) == len(other) and "absent" not in table, table
    assert whoami(lab, "Site1", "Site2").json["site"] == "Site2"
    assert whoami(lab, "Site4", "Site1; Site3").json["site"] == "Site3"

    lab.site("Site1", "revoke", "Site5", "--yes")
    lab.wait_shown(["Site2"], {"Site1": "present", "Site2": "present", "Site3": "unknown", "Site4": "unknown",
                               "Site5": "revoked"})
    assert whoami(lab, "Site3", "Site5").json["site"] == "Site5"  # nobody here has heard of it
    assert lab.shown("Site4")["Site5"] == "present"

    lab.heal()
    rest = LEFT + RIGHT[:-1]
    lab.wait_shown(rest, {**{site: "present" for site in rest}, "Site5": "revoked"})
    wait_for(lambda: len({str(sorted(states(lab, site).items())) for site in rest}) == 1, "views that are equal")
    for site in lab.sites:
        assert not lab.events(site, "a site has stopped", before[site])
    for site in rest:
        answer = whoami(lab, site, "Site5")
        assert answer.status >= 400 and "Site5" in answer.json["detail"], answer
        answer = whoami(lab, "Site5", site)
        assert answer.status >= 400, answer
    assert whoami(lab, "Site5", "Site5").json["site"] == "Site5"  # what concerns it alone
    for site in made:
        assert lab.ask(site, "compute", f"/servers/{made[site]}").status == 200
