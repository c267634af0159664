"""`;` and `|`, and what scopes resolve to, while the network is cut in the middle of requests.

All requests are asked at Site1. Site4 is near; Site2 and Site3 are far from it and near each other:

    Site1 5ms Site4    Site1 40ms Site2    Site1 46ms Site3    Site2 8ms Site3
"""
import re
import threading
import time

import pytest
from played import Played
from wan_lab import Lab, wait_for

MATRIX = {"sites": ["Site1", "Site2", "Site3", "Site4"], "default": {"rtt": "44ms"},
          "pairs": {"Site1<>Site4": {"rtt": "5ms"}, "Site1<>Site2": {"rtt": "40ms"}, "Site1<>Site3": {"rtt": "46ms"},
                    "Site2<>Site3": {"rtt": "8ms"}}}
ANSWER_S = 60  # `timeouts: {answer: ...}`, which is what one waits for where nobody looks after the path
SOON_S = 12  # far less than that; about a second, but the machine may be busy


@pytest.fixture(scope="module")
def sites():
    with Lab(MATRIX) as lab:
        played = {site: Played(lab, site) for site in lab.sites}
        away = [Played(lab, site, "image", 503) for site in lab.sites]
        for site, region in (("Site2", "far"), ("Site3", "far"), ("Site4", "near")):
            lab.configure(site, tags={"region": region})
        try:
            yield lab, played
        finally:
            for service in [*played.values(), *away]:
                service.stop()


@pytest.fixture
def lab(sites):
    """All is well: everybody is there, and the paths from Site1 are known to be good."""
    lab, played = sites
    lab.heal()
    for service in played.values():
        service.release()
    lab.wait_present()
    for site in lab.sites[1:]:
        wait_for(lambda site=site: ask(lab, site).status == 200 and path(lab, site) == "up", f"the path to {site}")
    for service in played.values():
        service.forget()
    return lab


@pytest.fixture
def services(sites, lab):
    """By site; what is played there."""
    return sites[1]


def ask(lab, scope, method="GET", at="Site1", body=None):
    return lab.ask(at, "compute", "/work", method, {"Scope": scope}, body, timeout_s=ANSWER_S + 30)


class Asking:
    """A request under way."""

    def __init__(self, lab, scope, method="GET", body=None):
        self.answer = self.error = None
        self.thread = threading.Thread(target=self.run, args=(lab, scope, method, body))
        self.thread.start()

    def run(self, *arguments):
        try:
            self.answer = ask(*arguments[:3], body=arguments[3])
            self.ended = time.monotonic()
        except OSError as error:
            self.error = error

    def wait(self):
        self.thread.join(ANSWER_S + 60)
        assert self.answer is not None, self.error
        return self.answer

    @property
    def is_over(self):
        return not self.thread.is_alive()


def path(lab, site):
    about = lab.view("Site1")[site]["path"]
    return about and about["state"]


def attempts(answer):
    """(site, what became of it), as Site1 says: it adds to what others said."""
    made = []
    said = [value for name, value in answer.headers if name == "Proxy-Status"][-1]
    for member in re.split(r", (?=\")", said):
        parts = member.split("; ")
        fields = dict(part.partition("=")[::2] for part in parts[1:])
        site = fields.get("next-hop", parts[0]).strip('"')
        made.append((site, (fields.get("error") or fields.get("received-status") or fields["details"]).strip('"')))
    return made


def resolve(lab, scope):
    """The sites that a scope gives at Site1, in the order in which they are tried: of a service that says everywhere that
    it is not there now."""
    answer = lab.ask("Site1", "image", "/whoami", headers={"Scope": scope})
    assert answer.status == 503, answer
    sites = [site for site, _ in attempts(answer)]
    return sites[-1:] + sites[:-1]  # the first one's answer is the one that counts, and is told last


# ---- `;` ----------------------------------------------------------------------------------------------------------------


def test_a_read_moves_on_when_the_network_is_cut_under_it(lab, services):
    services["Site2"].hold()
    asking = Asking(lab, "Site2; Site3")
    services["Site2"].wait_asked()
    begin = time.monotonic()
    lab.cut("Site1", "Site2")
    answer = asking.wait()
    took = asking.ended - begin
    print(f"moved on {took:.2f} s after the cut")
    assert answer.json["site"] == "Site3" and [site for site, _ in attempts(answer)] == ["Site2", "Site3"], answer
    assert took < SOON_S
    assert path(lab, "Site2") == "down"
    # Now it is known, before gossip has said anything: the next one does not even try.
    begin = time.monotonic()
    answer = ask(lab, "Site2; Site3")
    assert answer.json["site"] == "Site3" and services["Site2"].runs() == 1
    # And when it is back, that is noticed as well.
    services["Site2"].release()
    lab.heal()
    wait_for(lambda: ask(lab, "Site2; Site3").json["site"] == "Site2", "the way back to Site2")


def test_a_write_that_was_sent_is_not_sent_again(lab, services):
    """It waits for the site that may have run it: the answer comes when the network is whole again."""
    services["Site2"].hold()
    asking = Asking(lab, "Site2; Site3", "POST", b"once")
    services["Site2"].wait_asked()
    lab.cut("Site1", "Site2")
    wait_for(lambda: path(lab, "Site2") == "down", "Site1 to notice")
    assert ask(lab, "Site2; Site3").json["site"] == "Site3"  # a read goes elsewhere meanwhile
    assert not asking.is_over
    services["Site2"].release()
    lab.heal()
    answer = asking.wait()
    assert answer.status == 201 and answer.json["site"] == "Site2" and attempts(answer) == [("Site2", "201")], answer
    assert services["Site2"].runs("POST") == 1 and services["Site3"].runs("POST") == 0


def test_a_write_that_gets_no_answer_says_so(lab, services):
    lab.configure("Site1", timeouts={"answer": "2s", "stop": "3s"})
    try:
        services["Site2"].hold()
        asking = Asking(lab, "Site2; Site3", "POST", b"once")
        services["Site2"].wait_asked()
        lab.cut("Site1", "Site2")
        answer = asking.wait()
    finally:
        lab.configure("Site1", timeouts={"stop": "3s"})
    assert answer.status == 504 and answer.json["type"].endswith("no-answer"), answer
    assert "may have run there, and must not run twice, so no other site was asked" in answer.json["detail"]
    assert services["Site2"].runs() == 1 and services["Site3"].runs() == 0


def test_a_write_of_which_nothing_was_sent_moves_on(lab, services):
    """Site1 starts again, so that it has no connection: none comes about, and the next site gets it."""
    lab.kill("Site1")
    lab.start_agent("Site1")
    lab.wait_present()
    lab.cut("Site1", "Site4")
    begin = time.monotonic()
    answer = ask(lab, "Site4; Site3", "POST", body=b"once")
    assert answer.status == 201 and answer.json["site"] == "Site3", answer
    assert [site for site, _ in attempts(answer)] == ["Site4", "Site3"]
    assert time.monotonic() - begin < SOON_S
    assert services["Site4"].runs() == 0 and services["Site3"].requests == [("POST", "/work", b"once")]


# ---- `|` ----------------------------------------------------------------------------------------------------------------


def test_the_nearest_answers_alone(lab, services):
    for _ in range(5):
        answer = ask(lab, "Site3 | Site4 | Site2")
        assert answer.json["site"] == "Site4" and attempts(answer) == [("Site4", "200")], answer
    assert services["Site2"].runs() == services["Site3"].runs() == 0


def test_the_slow_one_is_given_up(lab, services):
    services["Site4"].hold()
    answer = ask(lab, "Site4 | Site2")
    assert answer.json["site"] == "Site2" and attempts(answer) == [("Site4", "given up"), ("Site2", "200")], answer
    services["Site4"].wait_given_up()  # its service, by its own agent


def test_the_nearest_is_cut_off_in_the_middle(lab, services):
    for site in ("Site2", "Site4"):
        services[site].hold()
    asking = Asking(lab, "Site2 | Site4")
    for site in ("Site2", "Site4"):
        services[site].wait_asked()
    begin = time.monotonic()
    lab.cut("Site1", "Site4")
    services["Site2"].release()
    answer = asking.wait()
    assert answer.json["site"] == "Site2" and asking.ended - begin < SOON_S, answer
    assert services["Site2"].runs() == services["Site4"].runs() == 1


def test_what_must_not_run_twice_is_no_race(lab, services):
    services["Site4"].hold()
    asking = Asking(lab, "Site2 | Site4", "POST", b"once")
    services["Site4"].wait_asked()
    lab.cut("Site1", "Site4")
    wait_for(lambda: path(lab, "Site4") == "down", "Site1 to notice")
    assert not asking.is_over and services["Site2"].runs() == 0
    services["Site4"].release()
    lab.heal()
    answer = asking.wait()
    assert answer.json["site"] == "Site4" and "one after the other" in answer.header("Warning"), answer
    assert services["Site2"].runs() == 0 and services["Site4"].runs() == 1


# ---- what is believed of a path ----------------------------------------------------------------------------------------


def test_a_glitch_is_no_reason_to_switch(lab, services):
    """A probe, or its answer, is lost; TCP sends it again."""
    lost = lab.metric("Site1", "cheops_paths_lost_total")
    for _ in range(3):
        before = lab.stats("Site1", "Site2")["cut"]
        lab.cut("Site1", "Site2")
        wait_for(lambda: lab.stats("Site1", "Site2")["cut"] > before, "something to be lost")
        lab.heal()
        answer = ask(lab, "Site2; Site3")
        assert answer.json["site"] == "Site2" and attempts(answer) == [("Site2", "200")], answer
        probes = lab.metric("Site1", "cheops_path_probes_total")
        lab.wait_metric("Site1", "cheops_path_probes_total", probes + 2)
    assert lab.metric("Site1", "cheops_paths_lost_total") == lost and path(lab, "Site2") == "up"
    assert services["Site3"].runs() == 0


def block_udp(lab, site):
    """No gossip gets in or out; TCP does."""
    for words in ("table inet gossip", "chain inet gossip in { type filter hook input priority 0; }",
                  "chain inet gossip out { type filter hook output priority 0; }",
                  "rule inet gossip in udp dport 8070 drop", "rule inet gossip out udp dport 8070 drop"):
        run = lab.run(site, ["nft", "add " + words])
        assert run.returncode == 0, run


def test_gossip_never_blocks_a_path_that_works(lab, services):
    """To gossip Site2 is lost, and to Site2 all others are. Requests go both ways all the same."""
    block_udp(lab, "Site2")
    try:
        lab.wait_shown(["Site1", "Site3", "Site4"], {"Site1": "present", "Site2": "unknown", "Site3": "present",
                                                     "Site4": "present"})
        wait_for(lambda: lab.shown("Site2")["Site4"] == "unknown", "Site2 to miss Site4, which it has never used")
        for _ in range(3):
            assert ask(lab, "Site2").json["site"] == "Site2"
            assert ask(lab, "Site2", "POST", body=b"x").json["site"] == "Site2"
            assert ask(lab, "Site1", at="Site2").json["site"] == "Site1"
            assert ask(lab, "Site3", at="Site2").json["site"] == "Site3"
            # In the order that was written: gossip puts nobody behind.
            for method in ("GET", "POST"):
                assert attempts(ask(lab, "Site2; Site3", method)) == [("Site2", "200" if method == "GET" else "201")]
                assert ask(lab, "Site4; Site2", method, at="Site2").json["site"] == "Site4"
            assert ask(lab, "Site3 | Site4", at="Site2").status == 200
        assert path(lab, "Site2") == "up"
    finally:
        assert lab.run("Site2", ["nft", "delete", "table", "inet", "gossip"]).returncode == 0
    lab.wait_present()


# ---- functions, against the live view --------------------------------------------------------------------------------


def test_around_another_site(lab, services):
    """Site1 never measures how far Site3 is from Site2: coordinates tell. Site4 is near Site1, not near Site2."""
    wait_for(lambda: (lab.view("Site1", "Site2")["Site3"]["estimate_ms"] or 100) < 20 <
             (lab.view("Site1", "Site2")["Site4"]["estimate_ms"] or 0), "estimates that are near the truth")
    assert lab.view("Site1", "Site2")["Site3"]["rtt_ms"] is None
    wait_for(lambda: resolve(lab, "around(Site2, 20ms)") == ["Site2", "Site3"], "Site1 to use them")
    assert ask(lab, "around(Site2, 20ms)").json["site"] == "Site2"
    lab.cut("Site1", "Site2")
    answer = ask(lab, "around(Site2, 20ms)")
    assert answer.json["site"] == "Site3" and services["Site4"].runs() == services["Site1"].runs() == 0, answer


def test_functions_see_the_sites_as_they_are_now(lab, services):
    whole = {"!Site4": ["Site1", "Site2", "Site3"], "fallback(nearest(3))": ["Site1", "Site4", "Site2"],
             "either(nearest(3))": ["Site1", "Site4", "Site2"], "fallback(all())": ["Site1", "Site4", "Site2", "Site3"],
             "fallback(tagged(region=far))": ["Site2", "Site3"], "either(tagged(region=far))": ["Site2", "Site3"]}
    without = {"!Site4": ["Site1", "Site3", "Site2"], "fallback(nearest(3))": ["Site1", "Site4", "Site3"],
               "either(nearest(3))": ["Site1", "Site4", "Site3"], "fallback(all())": ["Site1", "Site4", "Site3"],
               "fallback(tagged(region=far))": ["Site3", "Site2"], "either(tagged(region=far))": ["Site3", "Site2"]}

    def given():
        return {scope: resolve(lab, scope) for scope in whole}

    wait_for(lambda: given() == whole, lambda: f"the sites of scopes; they are {given()}")
    lab.isolate("Site2")
    # At once, by what the paths tell.
    begin = time.monotonic()
    assert ask(lab, "fallback(tagged(region=far))").json["site"] == "Site3"
    assert time.monotonic() - begin < SOON_S
    lab.wait_shown(["Site1"], {"Site1": "present", "Site2": "unknown", "Site3": "present", "Site4": "present"})
    wait_for(lambda: given() == without, lambda: f"the sites without Site2; they are {given()}")
    assert ask(lab, "tagged(region=near)").json["site"] == "Site4"
    lab.heal()
    lab.wait_present()
    wait_for(lambda: given() == whole, lambda: f"the sites as before; they are {given()}")
