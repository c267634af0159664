"""A site behind a satellite: two seconds there and back, and 7 % of all frames are lost, each way. It takes part like any
other, only more slowly. Requests are under way at the same time here, so that the tests do not take as long as all of them."""
import concurrent.futures

import pytest
from wan_lab import Lab, wait_for

GROUND, REMOTE = ["Site1", "Site2", "Site3"], "Site4"
LOST = "is lost: cut off or dead"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def lab():
    """The remote site joins over its line, as the others do."""
    with Lab("satellite") as made:
        yield made


@pytest.fixture
def asks(lab):
    """asks(at, scope): a request, whose answer is `.result()`."""
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        def ask(site, scope, service="compute", path="/whoami", method="GET", body=None):
            return pool.submit(lab.ask, site, service, path, method, {"Scope": scope, **(JSON if body else {})}, body)

        def until_it_works(site, scope):
            return pool.submit(wait_for, lambda: ask(site, scope).result().status == 200, f"an answer of {scope} at {site}")

        ask.until_it_works = until_it_works
        yield ask


def site_of(asked):
    answer = asked.result()
    assert answer.status == 200, answer
    return answer.json["site"]


def test_it_stays_present_and_is_used(lab, asks):
    before = {site: len(lab.log(site)) for site in lab.sites}
    probes = {site: lab.metric(site, "cheops_gossip_probes_total") for site in lab.sites}
    for site in GROUND:  # it is known how far it is; before that, a connection may be given up too early
        wait_for(lambda site=site: 1500 < (lab.view(site)[REMOTE]["rtt_ms"] or 0) < 5000, f"a round trip of {site}")
    warm = [asks.until_it_works(*pair) for pair in (("Site1", REMOTE), (REMOTE, "Site1"), (REMOTE, "Site2"))]
    for made in warm:
        made.result()
    # From it and to it, reading and writing, and calls that services make.
    to_it, from_it = asks("Site1", REMOTE), asks(REMOTE, "Site2")
    inner = asks(REMOTE, f"image: Site3, compute: {REMOTE}", path="/whoami?via=image")
    written = asks("Site2", REMOTE, "image", "/images", "POST", '{"name": "debian"}')
    # It is the choice of who names it first, and not of who asks for any.
    first, nearest = asks("Site1", f"{REMOTE}; Site2"), asks("Site3", f"{REMOTE} | Site2")
    outward = asks(REMOTE, "Site1; Site3")
    assert site_of(to_it) == site_of(first) == REMOTE and site_of(from_it) == "Site2", first.result()
    assert site_of(nearest) == "Site2" and site_of(outward) == "Site1"
    assert inner.result().json["via"]["site"] == "Site3", inner.result()
    image = written.result()
    assert image.status == 201 and lab.ask(REMOTE, "image", f"/images/{image.json['id']}").status == 200, image
    # So many probes by each: nobody is taken for lost.
    for site in lab.sites:
        lab.wait_metric(site, "cheops_gossip_probes_total", probes[site] + 16)
    lab.wait_present()
    for site in lab.sites:
        assert not lab.events(site, LOST, before[site])


def test_it_is_used_for_the_first_time(lab, asks):
    """Site1 starts again, so that it has no connection to it, and knows of it by gossip alone: how far it is, and that it is
    there. A site nearby would be given up for dead long before this one can answer."""
    lab.kill("Site1")
    lab.start_agent("Site1")
    lab.wait_present()
    wait_for(lambda: 1500 < (lab.view("Site1")[REMOTE]["rtt_ms"] or 0) < 5000, "a round trip")
    assert lab.view("Site1")[REMOTE]["path"] is None
    assert site_of(asks("Site1", f"{REMOTE}; Site2")) == REMOTE


def test_it_is_cut_off_and_comes_back(lab, asks):
    lab.isolate(REMOTE)
    towards, home = asks("Site1", f"{REMOTE}; Site2"), asks(REMOTE, f"Site1; {REMOTE}")
    # Something new on either side, which the other one gets to know afterwards.
    lab.configure("Site2", tags={"season": "winter"})
    lab.configure(REMOTE, tags={"season": "summer"})
    lab.wait_shown(GROUND, {**{site: "present" for site in GROUND}, REMOTE: "unknown"})
    assert site_of(towards) == "Site2" and site_of(home) == REMOTE
    lab.heal()
    lab.wait_present()
    wait_for(lambda: all(lab.view(site)["Site2"]["tags"] == {"season": "winter"} and
                         lab.view(site)[REMOTE]["tags"] == {"season": "summer"} for site in lab.sites), "the news")
    for made in [asks.until_it_works("Site3", REMOTE), asks.until_it_works(REMOTE, "Site3")]:
        made.result()
