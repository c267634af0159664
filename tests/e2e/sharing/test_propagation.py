"""The scope follows the workflow: in each way that an application can pass it on, to the right calls, and to no others."""
import concurrent.futures
import itertools
import re
import threading

import pytest
from demo_process import ask

TRACEPARENT = "00-{:032x}-00f067aa0ba902b7-01"
UNATTRIBUTED = "cheops_scope_unattributed_total"
AMBIGUOUS = "cheops_scope_ambiguous_total"
SITES = ("Site1", "Site2", "Site3")


def fresh():
    """A number for an id that no other test uses."""
    fresh.last = getattr(fresh, "last", 0x1000) + 1
    return fresh.last


def extra(mode):
    """What a client of an application that forwards one header sends anyway: that header."""
    return {"X-Auth-Token": "secret"} if mode.startswith("header=") else {}


# ---- it follows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope, where", [("image: Site2", ("Site1", "Site2")),
                                          ("compute: Site3", ("Site3", "Site3")),
                                          ("compute: Site2, image: Site3", ("Site2", "Site3")),
                                          ("compute: Site3, image: Site1", ("Site3", "Site1"))])
def test_follows_in_each_mode(carrying, scope, where):
    before = carrying.metric("Site1", UNATTRIBUTED)
    assert carrying.via(Scope=scope, **extra(carrying.mode)) == where
    assert carrying.metric("Site1", UNATTRIBUTED) == before


@pytest.mark.parametrize("scope, where", [("image: Site1 & Site2", ("Site1", "Site1")),
                                          ("compute: Site2, image: Site1 & Site2", ("Site2", "Site2")),
                                          ("image: Site3 & Site2", ("Site1", "Site3"))])
def test_a_service_gets_one_answer(carrying, scope, where):
    """It cannot read those of several sites side by side: its own site's, or the first of the scope."""
    assert carrying.via(Scope=scope, **extra(carrying.mode)) == where


def test_boots_from_another_site_in_each_mode(carrying):
    """Two inner calls, for the record and for the bytes, both to Site2."""
    answer = carrying.boot("Site1", "Site2", {"Scope": "image: Site2", **extra(carrying.mode)})
    assert answer.status == 201 and answer.json["image_checksum"] == carrying.images["Site2"]["checksum"]


def test_every_carrier_in_each_mode(carrying):
    given = extra(carrying.mode)
    for headers, prefix in [({"X-Scope": "image: Site2"}, ""), ({"baggage": "cheops.scope=image:Site2"}, ""),
                            ({}, "/scope/image:Site2")]:
        answer = ask(f"{carrying.url('Site1', 'compute')}{prefix}/whoami?via=image", headers={**headers, **given})
        assert answer.json["via"]["site"] == "Site2"


def test_without_scope_nothing_follows(carrying):
    assert carrying.via(Scope="image: Site2", **extra(carrying.mode)) == ("Site1", "Site2")
    assert carrying.via(**extra(carrying.mode)) == ("Site1", "Site1")


def test_service_that_forwards_nothing(demos):
    sites = demos("none")
    before = sites.metric("Site1", UNATTRIBUTED)
    assert sites.via(Scope="image: Site2") == ("Site1", "Site1")
    assert sites.metric("Site1", UNATTRIBUTED) == before + 1
    assert sites.via() == ("Site1", "Site1")  # what nobody gave a scope is no lost scope
    assert sites.via(Scope="network: Site2") == ("Site1", "Site1")  # and what the scope does not name may run here
    assert sites.metric("Site1", UNATTRIBUTED) == before + 1


def test_header_to_append_to_is_missing(demos):
    """The scope cannot follow, so the call runs local: that is counted as well."""
    sites = demos("header=X-Auth-Token")
    before = sites.metric("Site1", UNATTRIBUTED)
    assert sites.via(Scope="image: Site2") == ("Site1", "Site1")
    assert sites.metric("Site1", UNATTRIBUTED) == before + 1


def test_request_id_too_long_to_be_remembered(demos):
    sites = demos("request-id")
    before = sites.metric("Site1", UNATTRIBUTED)
    assert sites.via(Scope="image: Site2", **{"X-Request-Id": "x" * 128}) == ("Site1", "Site2")
    assert sites.metric("Site1", UNATTRIBUTED) == before
    assert sites.via(Scope="image: Site2", **{"X-Request-Id": "x" * 129}) == ("Site1", "Site1")
    assert sites.metric("Site1", UNATTRIBUTED) == before + 1


# ---- ids that are forwarded ---------------------------------------------------------------------------------------------


def seen_by_compute(sites, mark):
    path = f"/whoami?via=image&mark={mark}"
    return [entry["headers"] for entry in sites.requests("Site1", "compute") if entry["path"] == path][-1]


def ask_marked(sites, **headers):
    """As sites.via(), and what compute saw."""
    mark = fresh()
    answer = ask(f"{sites.url('Site1', 'compute')}/whoami?via=image&mark={mark}", headers=headers)
    return answer.json["via"]["site"], seen_by_compute(sites, mark)


def test_trace_of_the_client_is_kept(demos):
    traceparent = TRACEPARENT.format(fresh())
    site, seen = ask_marked(demos("trace"), Scope="image: Site2", traceparent=traceparent)
    assert site == "Site2" and seen["traceparent"] == traceparent


def test_trace_is_made_where_there_is_none(demos):
    site, seen = ask_marked(demos("trace"), Scope="image: Site2")
    assert site == "Site2" and re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", seen["traceparent"])
    _, again = ask_marked(demos("trace"), Scope="image: Site2")
    assert again["traceparent"] != seen["traceparent"]
    _, without = ask_marked(demos("trace"))
    assert "traceparent" not in without


def test_malformed_trace_is_replaced(demos):
    site, seen = ask_marked(demos("trace"), Scope="image: Site2", traceparent="00-nonsense")
    assert site == "Site2" and re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", seen["traceparent"])


def test_request_id_of_the_client_is_kept(demos):
    site, seen = ask_marked(demos("request-id"), Scope="image: Site2", **{"X-Request-Id": f"mine-{fresh()}"})
    assert site == "Site2" and seen["X-Request-Id"].startswith("mine-")


def test_request_id_is_made_where_there_is_none(demos):
    site, seen = ask_marked(demos("request-id"), Scope="image: Site2")
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert site == "Site2" and re.fullmatch(uuid, seen["X-Request-Id"])


@pytest.mark.parametrize("mode, header, form", [("trace", "traceparent", TRACEPARENT), ("request-id", "X-Request-Id", "id-{}")])
def test_id_that_stands_for_two_scopes_tells_nothing(demos, mode, header, form):
    sites = demos(mode)
    shared = {header: form.format(fresh())}
    assert sites.via(Scope="image: Site2", **shared) == ("Site1", "Site2")
    assert sites.via(Scope="image: Site2", **shared) == ("Site1", "Site2")  # the same scope again is no contradiction
    before = [sites.metric("Site1", name) for name in (AMBIGUOUS, UNATTRIBUTED)]
    assert sites.via(Scope="image: Site3", **shared) == ("Site1", "Site1")
    assert [sites.metric("Site1", name) for name in (AMBIGUOUS, UNATTRIBUTED)] == [count + 1 for count in before]
    assert sites.via(Scope="image: Site3", **{header: form.format(fresh())}) == ("Site1", "Site3")


@pytest.mark.parametrize("mode, header, form", [("trace", "traceparent", TRACEPARENT), ("request-id", "X-Request-Id", "id-{}")])
def test_client_that_keeps_its_id_but_not_its_scope_stays_local(demos, mode, header, form):
    sites = demos(mode)
    shared = {header: form.format(fresh())}
    assert sites.via(Scope="compute: Site1, image: Site2", **shared) == ("Site1", "Site2")
    assert sites.via(**shared) == ("Site1", "Site1")


def test_given_scope_counts_more_than_a_remembered_one(demos):
    sites = demos("trace")
    shared = {"traceparent": TRACEPARENT.format(fresh())}
    sites.via(Scope="image: Site2", **shared)
    direct = ask(sites.url("Site1", "image") + "/whoami", headers={"Scope": "Site3", **shared})
    assert direct.json == {"service": "image", "site": "Site3"}


# ---- it reaches nobody else ---------------------------------------------------------------------------------------------

SCOPES = re.compile(r"!SCOPE!|cheops[.-]|\bx-scope\b|'scope'", re.IGNORECASE)


def leaked(entry):
    """The headers of a request that tell of a scope, by their names in small letters."""
    return {name.lower() for name, value in entry["headers"].items() if SCOPES.search(f"'{name}': {value}")}


ALLOWED = {"headers": {"scope", "cheops-caller"}, "baggage": {"baggage"}, "trace": set(), "request-id": set(),
           "header=X-Auth-Token": {"x-auth-token"}, "none": set()}


@pytest.mark.parametrize("mode", ALLOWED)
def test_no_service_sees_a_scope_that_it_was_not_to_carry(demos, mode):
    sites = demos(mode)
    given = extra(mode)
    many = {"Scope": "compute: Site2, image: Site3", "X-Scope": "image: Site1", "baggage": "cheops.scope=image:Site1,a=1",
            "Cheops-Hop": "v1 service=image from=Site2 hops=1 mac=00", **given}
    assert ask(f"{sites.url('Site1', 'compute')}/scope/image:Site1/whoami?via=image", headers=many).status == 200
    for scope in ("image: Site2", "compute: Site3", "compute: Site1, image: Site1"):
        sites.via(Scope=scope, **given)
    for site, service in itertools.product(SITES, ("compute", "image", "network")):
        allowed = ALLOWED[mode] if service == "compute" else set()
        for entry in sites.requests(site, service):
            assert leaked(entry) <= allowed, (site, service, entry)
            assert "/scope/" not in entry["path"], (site, service, entry)


def test_the_rest_of_baggage_stays(demos):
    sites = demos("baggage")
    mark = fresh()
    ask(f"{sites.url('Site1', 'compute')}/whoami?via=image&mark={mark}",
        headers={"baggage": "a=1;p=q,cheops.scope=image:Site2,b=2"})
    seen = seen_by_compute(sites, mark)
    assert seen["baggage"] == "a=1;p=q,b=2,cheops.scope=image%3A%20Site2;caller=compute"
    assert sites.requests("Site2", "image")[-1]["headers"]["baggage"] == "a=1;p=q,b=2"


def test_the_header_that_is_appended_to_arrives_as_it_was(demos):
    sites = demos("header=X-Auth-Token")
    token = f"token-{fresh()}"
    assert sites.via(Scope="image: Site2", **{"X-Auth-Token": token}) == ("Site1", "Site2")
    assert sites.requests("Site2", "image")[-1]["headers"]["X-Auth-Token"] == token
    assert sites.requests("Site1", "compute")[-1]["headers"]["X-Auth-Token"].startswith(token + "!SCOPE!")


# ---- many at once -------------------------------------------------------------------------------------------------------

CONCURRENT = 200


def all_at_once(call):
    """Calls with 0 to 199, each in a thread of its own, none before all are there."""
    together = threading.Barrier(CONCURRENT)

    def one(number):
        together.wait(60)
        return call(number)

    with concurrent.futures.ThreadPoolExecutor(CONCURRENT) as pool:
        return list(pool.map(one, range(CONCURRENT)))


def places(number):
    """Where request `number` is sent, runs, and finds its image: all combinations, one after the other."""
    return [(a, b, c) for a in SITES for b in SITES for c in SITES][number % 27]


def test_concurrent_requests_never_mix(carrying):
    """Each server that 200 concurrent requests with 9 different scopes boot is where its scope says, with its image."""
    def boot(number):
        at, compute, image = places(number)
        return carrying.boot(at, image, {"Scope": f"compute: {compute}, image: {image}", **extra(carrying.mode)})

    answers = all_at_once(boot)
    stored = {site: {server["id"]: server for server in ask(carrying.own_url(site, "compute") + "/servers").json["servers"]}
              for site in SITES}
    for number, answer in enumerate(answers):
        _, compute, image = places(number)
        assert answer.status == 201, (number, answer)
        server = stored[compute][answer.json["id"]]
        assert server == answer.json
        assert (server["image"], server["image_checksum"]) == (carrying.images[image]["id"], carrying.images[image]["checksum"])


def test_concurrent_requests_reach_the_right_site(carrying):
    """The same, where nothing but the scope tells one call from another."""
    def who(number):
        at, compute, image = places(number)
        return carrying.via(at, Scope=f"compute: {compute}, image: {image}", **extra(carrying.mode))

    for number, answer in enumerate(all_at_once(who)):
        assert answer == places(number)[1:], number


def test_concurrent_requests_with_and_without_scope(carrying):
    """Every other one has none, and must stay local."""
    def who(number):
        at, _, image = places(number)
        scope = {"Scope": f"image: {image}"} if number % 2 else {}
        return carrying.via(at, **scope, **extra(carrying.mode))

    for number, answer in enumerate(all_at_once(who)):
        at, _, image = places(number)
        assert answer == (at, image if number % 2 else at), number


def test_concurrent_requests_that_cannot_be_followed_run_local(demos):
    sites = demos("none")
    before = sum(sites.metric(site, UNATTRIBUTED) for site in SITES)

    def who(number):
        at, compute, image = places(number)
        return sites.via(at, Scope=f"compute: {compute}, image: {image}")

    for number, answer in enumerate(all_at_once(who)):
        compute = places(number)[1]
        assert answer == (compute, compute), number
    assert sum(sites.metric(site, UNATTRIBUTED) for site in SITES) == before + CONCURRENT
