"""Deleting what others rely on warns of it, or is refused; what cuts a reliance puts at risk whoever relies on it."""
from demo_process import ask, wait_for
from test_operations import Events, Paused, api, follow, make

BOTH = "Site1 & Site2"


def secret(demo, name, scope=None, at="Site1"):
    answer = ask(demo.url(at, "image") + "/secrets", "POST", {"Scope": scope, "Prefer": "wait=60"} if scope else {},
                 json_body={"name": name, "data": "hush"})
    assert answer.status == 201, answer
    return answer.json["id"]


def server(demo, name, scope, path="/servers", **members):
    """Replicated, and everywhere once this returns."""
    image = make(demo, f"image of {name}", "Site1 & Site2 & Site3", "/images", "image",
                 headers={"Prefer": "wait=60"}).json["id"]
    answer = make(demo, name, scope, path, "compute", {"Prefer": "wait=60"}, image=image, **members)
    assert follow(demo, answer.header("Cheops-Operation")).json["reached"]
    return answer.json["id"]


def stack(demo, name, scope, **members):
    return server(demo, name, scope, "/stacks", servers=2, **members)


def delete(demo, path, service="image", at="Site1", headers=None):
    return ask(demo.url(at, service) + path, "DELETE", headers)


def risks(demo, site, replicant):
    return api(demo, site, f"/replicants/{replicant}").json["at_risk"]


def is_told(event, name, replicant):
    return event["event"] == name and event["data"]["replicant"] == replicant


def test_what_is_replicated_goes_with_a_warning(demo):
    key = secret(demo, "key", BOTH)
    relying = server(demo, "relies", BOTH, secret=key)
    answer = delete(demo, f"/secrets/{key}")
    assert answer.status == 204
    assert answer.header("Warning") == f'299 - "compute.server {relying} relies on it"'
    for site in ("Site1", "Site2"):
        (risk,) = wait_for(lambda site=site: risks(demo, site, relying), f"the risk at {site}")
        assert (risk["id"], risk["why"], risk["place"], risk["sites"]) == (key, "gone", "/secret", [])


def test_nobody_relies_on_it(demo):
    key = secret(demo, "idle", BOTH)
    image = make(demo, "required", BOTH, "/images", "image", {"Prefer": "wait=60"}).json["id"]
    ask(demo.url("Site1", "compute") + "/servers", "POST", {"Scope": BOTH, "Prefer": "wait=60"},
        json_body={"name": "requires", "image": image})
    for path in (f"/secrets/{key}", f"/images/{image}"):  # an image is needed while a server is made
        answer = delete(demo, path)
        assert answer.status == 204 and answer.header("Warning") is None, answer


def test_once_the_one_that_relied_on_it_is_gone_nobody_does(demo):
    key = secret(demo, "outlives", BOTH)
    relying = server(demo, "short-lived", BOTH, secret=key)
    assert delete(demo, f"/servers/{relying}", "compute").status == 204
    answer = delete(demo, f"/secrets/{key}")
    assert answer.status == 204 and answer.header("Warning") is None, answer


def test_those_that_are_many_are_counted(demo):
    key = secret(demo, "popular", BOTH)
    made = {server(demo, f"fan {i}", BOTH, secret=key) for i in range(10)}
    warning = delete(demo, f"/secrets/{key}").header("Warning")
    assert warning.endswith(' and 2 more rely on it"') and sum(each in warning for each in made) == 8


def test_a_name_does_no_harm_in_a_header(demo):
    key = secret(demo, "named", BOTH)
    relying = stack(demo, 'a "name"\\ with ünusual\r\nX: y', BOTH, secret=key)
    warning = delete(demo, f"/secrets/{key}").header("Warning")
    assert warning == f'299 - "compute.stack {relying} (a ?name?? with ??nusual??X: y) relies on it"'


def test_what_is_at_one_site_only_is_known_to_be_relied_on(demo):
    """The scope takes it from Site1, where it is deleted by a request that no scope is said in."""
    key = secret(demo, "plain")
    relying = server(demo, "on plain", "{compute: Site1 & Site3, image: Site1}", secret=key)
    assert risks(demo, "Site1", relying) is None
    answer = delete(demo, f"/secrets/{key}")
    assert answer.status == 204 and relying in answer.header("Warning"), answer
    (risk,) = wait_for(lambda: risks(demo, "Site1", relying), "the risk")
    assert (risk["id"], risk["local_id"], risk["type"], risk["why"]) == (None, key, "image.secret", "gone")


def test_from_another_site_it_warns_as_well(demo):
    key = secret(demo, "shared plain")
    relying = server(demo, "on shared", "{compute: Site1 & Site3, image: Site1}", secret=key)
    answer = delete(demo, f"/secrets/{key}", at="Site2", headers={"Scope": "Site1"})
    assert answer.status == 204 and relying in answer.header("Warning"), answer


def test_where_it_is_taken_from_another_site_those_that_do_know(demo):
    """Site2, which has the secret, has none of the copies, and does not know who relies on it; Site1 does."""
    key = secret(demo, "of Site2", at="Site2")
    relying = server(demo, "on Site2", "{compute: Site1 & Site3, image: Site2}", secret=key)
    answer = delete(demo, f"/secrets/{key}", headers={"Scope": "Site2"})
    assert answer.status == 204 and answer.header("Warning") == f'299 - "compute.server {relying} relies on it"', answer
    (risk,) = wait_for(lambda: risks(demo, "Site1", relying), "the risk")
    assert (risk["local_id"], risk["why"], risk["sites"]) == (key, "gone", ["Site2"])


def test_two_sites_that_know_the_same_say_it_once(demo):
    key = secret(demo, "known to both")
    relying = server(demo, "on both", "{compute: Site1 & Site3, image: Site1}", secret=key)
    answer = delete(demo, f"/secrets/{key}", at="Site3", headers={"Scope": "Site1"})
    assert answer.status == 204 and answer.header("Warning") == f'299 - "compute.server {relying} relies on it"', answer


def test_a_delete_that_fails_warns_of_nothing(demo):
    key = secret(demo, "refused")
    server(demo, "on refused", "{compute: Site1 & Site3, image: Site1}", secret=key)
    assert ask(f"{demo.own_url('Site1', 'image')}/secrets/{key}", "DELETE").status == 204  # behind Cheops' back
    answer = delete(demo, f"/secrets/{key}")
    assert answer.status == 404 and answer.header("Warning") is None, answer


def test_a_site_that_cannot_be_reached_puts_at_risk_who_relies_on_it(demo):
    key = secret(demo, "afar", at="Site2")
    relying = server(demo, "from afar", "{compute: Site1 & Site3, image: Site2}", secret=key)
    other = server(demo, "from here", BOTH, secret=secret(demo, "near", BOTH))
    before = {site: demo.metric(site, "cheops_resources_at_risk") for site in ("Site1", "Site3")}
    events = {site: Events(demo, site) for site in before}
    with Paused(demo, "Site2"):
        for site in before:
            (risk,) = wait_for(lambda site=site: risks(demo, site, relying), f"the risk at {site}")
            assert (risk["local_id"], risk["why"], risk["sites"]) == (key, "unreachable", ["Site2"])
            told = events[site].until(lambda event: is_told(event, "at-risk", relying))[-1]["data"]
            assert (told["site"], told["why"]) == ("Site2", "unreachable")
            assert demo.metric(site, "cheops_resources_at_risk") > before[site]
        assert risks(demo, "Site1", other) is None
    for site in before:
        events[site].until(lambda event: is_told(event, "safe", relying))
        assert risks(demo, site, relying) is None
        wait_for(lambda site=site: demo.metric(site, "cheops_resources_at_risk") == before[site], "the others to be safe")
        events[site].close()
