"""`cheops site remove`: the site leaves all replicated resources, and nobody waits for it any more."""
from demo_process import ask, wait_for
from test_get_and_ops import address
from test_members import members
from test_operations import Paused, api
from test_replication import front, make, wait_everywhere


def operations(demo, meta_id, site):
    return api(demo, site, f"/replicants/{meta_id}").json["operations"]


def test_a_site_that_is_removed_leaves_all_mappings(demo, cheops):
    everywhere = make(demo, "everywhere", size=1).json["id"]
    leaving = make(demo, "is leaving it", size=1).json["id"]
    other = make(demo, "with another one", scope="Site2 & Site3", at="Site2", size=1).json["id"]
    for meta_id in (everywhere, leaving):
        wait_everywhere(demo, f"/pools/{meta_id}", {"size": 1})
    wait_everywhere(demo, f"/pools/{other}", {"size": 1}, ("Site2", "Site3"))
    with Paused(demo, "Site3"):
        for meta_id, site in ((everywhere, "Site1"), (leaving, "Site1"), (other, "Site2")):
            assert ask(front(demo, site, f"/pools/{meta_id}"), "PATCH", json_body={"size": 2}).status == 200
        dropped = cheops("replicant", "drop", leaving, "Site3", "--api", address(demo))
        assert dropped.status == 0, dropped
        wait_everywhere(demo, f"/pools/{everywhere}", {"size": 2}, ("Site1", "Site2"))
        wait_everywhere(demo, f"/pools/{leaving}", {"size": 2}, ("Site1", "Site2"))
        assert members(demo, leaving)["Site3"]["leaving"]
        assert operations(demo, everywhere, "Site1") > 0 and operations(demo, other, "Site2") > 0
        removed = cheops("site", "remove", "Site3", "--yes", "--api", address(demo))
        assert removed.status == 0, removed
        for site in ("Site1", "Site2"):
            for meta_id in (everywhere, leaving):
                wait_for(lambda meta_id=meta_id, site=site: set(members(demo, meta_id, site)) == {"Site1", "Site2"},
                         f"{site} to know that Site3 is no member")
                wait_for(lambda meta_id=meta_id, site=site: operations(demo, meta_id, site) == 0, "what waited for Site3 to be forgotten")
            wait_for(lambda site=site: demo.metric(site, "cheops_replica_pending_operations") == 0, "nothing to be pending")
        wait_for(lambda: set(members(demo, other, "Site2")) == {"Site2"}, "Site2 to have it alone")
        wait_for(lambda: operations(demo, other, "Site2") == 0, "what waited for Site3 to be forgotten")
        # It is not asked when copies are compared, and not waited for when one becomes that of all.
        shown = api(demo, "Site1", f"/replicants/{everywhere}/verify").json
        assert shown["verify"] == "same" and {each["site"] for each in shown["members"]} == {"Site1", "Site2"}
        repaired = cheops("repair", everywhere, "--from", "Site2", "--wait", "all", "--api", address(demo))
        assert repaired.status == 0, repaired
        # What it left somebody alone with is extended again.
        extended = cheops("replicant", "extend", other, "Site1", "--wait", "--api", address(demo, "Site2"))
        assert extended.status == 0, extended
        wait_everywhere(demo, f"/pools/{other}", {"size": 2}, ("Site1", "Site2"))
        assert ask(front(demo, "Site1", f"/pools/{everywhere}"), "DELETE").status in (200, 204)
        wait_everywhere(demo, f"/pools/{everywhere}", None, ("Site1", "Site2"))
