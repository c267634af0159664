"""Who belongs to the mesh: sites join, stop, die, come back, are removed, and say so at every site."""
import datetime
import re
import shutil

import pytest
import yaml
from wan_lab import PEER_PORT, Lab, wait_for

FOUNDERS = ["Site1", "Site2", "Site3", "Site4"]


@pytest.fixture(scope="module")
def lab():
    """Four sites that have joined, Site1 first; Site5 has not."""
    with Lab(5, join=4) as made:
        yield made


def wall():
    return datetime.datetime.now(datetime.timezone.utc)


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def others(*sites):
    return [site for site in ("Site1", "Site2", "Site3", "Site4", "Site5") if site not in sites]


def row(lab, at, name):
    """Of that site in what `cheops sites` prints."""
    lines = lab.cheops(at, "sites").stdout.splitlines()
    return next(line for line in lines if re.match(rf"{name}\b", line))


def serves(lab, site):
    """Requests that concern this site alone: read, write, and one that a service makes of another."""
    assert lab.ask(site, "compute", "/whoami").json["site"] == site
    assert lab.ask(site, "compute", "/whoami", headers={"Scope": site}).json["site"] == site
    made = lab.ask(site, "image", "/images", "POST", {"Content-Type": "application/json"}, '{"name": "debian"}')
    assert made.status == 201, made
    assert lab.ask(site, "image", f"/images/{made.json['id']}").status == 200
    assert lab.ask(site, "compute", "/whoami?via=image").json["via"]["site"] == site


# ---- coming -------------------------------------------------------------------------------------------------------------


def test_a_site_joins_while_all_others_run(lab):
    """Its own agent runs already, alone, and is told by `cheops site join`."""
    lab.start_agent("Site5")
    assert list(lab.shown("Site5")) == ["Site5"]
    serves(lab, "Site5")
    assert lab.ask("Site5", "compute", "/whoami", headers={"Scope": "Site1"}).status == 400  # a name that nobody has

    command = lab.site("Site1", "token", "Site5").split()
    assert command[:3] == ["cheops", "site", "join"] and command[3].startswith("cheops1_")
    assert "`Site5` has joined; it is one of 5 sites" in lab.site("Site5", "join", command[3])
    lab.wait_present()
    for site in lab.sites:
        for known in lab.sites:
            wait_for(lambda: re.search(r"\bpresent \d+[smh] .* 0\.1\.0 ", row(lab, site, known)),
                     lambda: f"{known} at {site}; it is {row(lab, site, known)}")  # suspect for a moment, if all are busy
        assert [name for name, about in lab.view(site).items() if about["authority"]] == ["Site1"]
    assert lab.ask("Site5", "compute", "/whoami", headers={"Scope": "Site2"}).json["site"] == "Site2"
    assert lab.ask("Site2", "compute", "/whoami", headers={"Scope": "Site5"}).json["site"] == "Site5"
    for site in FOUNDERS:
        assert len(lab.events(site, 'msg="a site has joined" site=Site5')) == 1


def test_a_name_that_is_taken(lab):
    """Both ends are told: who would join, and the authority."""
    lab.site("Site1", "token", "Site2", refused="The name is taken: there is a site `Site2` already")
    token = lab.token()
    path = lab.path("Site5", "impostor.yaml")
    config = yaml.safe_load(lab.path("Site5", "agent.yaml").read_text(encoding="utf-8"))
    state = lab.path("Site5", "impostor")
    path.write_text(yaml.safe_dump({**config, "site": "Site2", "state": str(state)}), encoding="utf-8")
    since = len(lab.log("Site1"))
    run = lab.cheops("Site5", "site", "join", token, "-c", str(path))
    assert run.returncode == 1 and "The name is taken: there is a site `Site2` already, and names are unique" in run.stderr
    refusal, = lab.events("Site1", "a site was refused that wanted to join", since)
    assert "site=Site2" in refusal and "why=name-taken" in refusal
    assert not state.exists() or not list(state.iterdir())
    # The token is still good for a name that is free.
    path.write_text(yaml.safe_dump({**config, "site": "Site6", "state": str(state)}), encoding="utf-8")
    assert lab.cheops("Site5", "site", "join", token, "-c", str(path)).returncode == 0
    # A certificate is a claim, also of a site that never showed up.
    lab.site("Site1", "token", "Site6", refused="The name is taken: there is a site `Site6` already")
    lab.site("Site1", "remove", "Site6", "--yes")
    shutil.rmtree(state)
    lab.wait_present()


# ---- going, and coming back ----------------------------------------------------------------------------------------------


def test_a_site_that_stops_is_absent(lab):
    begin = wall()
    lab.stop("Site4")
    lab.wait_shown(others("Site4"), {**{site: "present" for site in others("Site4")}, "Site4": "absent"})
    for site in others("Site4"):
        about = lab.view(site)["Site4"]
        assert about["state"] == "left" and begin - datetime.timedelta(seconds=1) <= time_of(about["since"]) <= wall()
        assert re.search(r"absent since .* \(left\)", row(lab, site, "Site4"))
    answer = lab.ask("Site1", "compute", "/whoami", headers={"Scope": "Site4"})
    assert answer.status in (502, 503) and "Site4" in answer.json["detail"], answer
    lab.start_agent("Site4")
    lab.wait_present()
    assert not [line for site in others("Site4") for line in lab.events(site, "is lost") if "Site4" in line]


def test_a_site_that_dies_is_unknown_since_then(lab):
    begin = lab.wait_calm()
    before = {site: len(lab.log(site)) for site in lab.sites}
    lab.kill("Site3")
    lab.wait_shown(others("Site3"), {**{site: "present" for site in others("Site3")}, "Site3": "unknown"})
    for site in others("Site3"):
        about = lab.view(site)["Site3"]
        assert about["state"] == "lost" and begin <= time_of(about["since"]) <= wall()
        assert re.search(r"unknown since \d", row(lab, site, "Site3"))
        suspected, lost = (lab.events(site, text, before[site]) for text in ("does not answer", "is lost: cut off or dead"))
        suspected = [line for line in suspected if "Site3" in line]
        assert len(lost) == 1 and "Site3" in lost[0] and suspected
        assert time_of(suspected[-1].split()[0]) <= time_of(lost[0].split()[0])
        assert not lab.events(site, "has stopped", before[site])
    lab.start_agent("Site3")
    lab.wait_present()
    for site in others("Site3"):  # one that is suspect counts as present already, until it answers
        wait_for(lambda site=site: [line for line in lab.events(site, "a site is there", before[site]) if "Site3" in line],
                 f"{site} to say that it is back")


def test_a_table_survives_and_one_live_entry_is_enough(lab):
    """All but Site4 are killed, and start again; the authority last. Site2 comes back by Site4 alone."""
    ids = {name: about["id"] for name, about in lab.view("Site1").items()}
    for site in others("Site4"):
        lab.wait_stored(site, *others(site))
        lab.kill(site)
    for site in others("Site2", "Site4"):
        lab.cut("Site2", site)
    for site in ("Site2", "Site3", "Site5"):
        lab.start_agent(site)
    there = others("Site1")
    lab.wait_shown(there, {**{site: "present" for site in there}, "Site1": "unknown"})
    assert lab.ask("Site3", "compute", "/whoami", headers={"Scope": "Site5"}).json["site"] == "Site5"
    assert lab.ask("Site2", "compute", "/whoami", headers={"Scope": "Site4"}).json["site"] == "Site4"
    lab.site("Site2", "token", "Site9", refused="ask at Site1")
    lab.start_agent("Site1")
    lab.wait_present()
    lab.heal()
    assert {name: about["id"] for name, about in lab.view("Site2").items()} == ids
    lab.token("Site9")  # the authority is back


def test_all_move_at_once_and_seeds_bring_them_together():
    """Nobody is where another one knows it to be. One that is told where two others are is enough for all."""
    with Lab(4) as lab:
        ids = {name: about["id"] for name, about in lab.view("Site1").items()}
        lab.wait_calm()
        for site in lab.sites:
            lab.wait_stored(site, *(known for known in lab.sites if known != site))
        for site in lab.sites:
            lab.kill(site)
        for site in lab.sites:
            lab.configure(site, peer=f"{lab.address(site)}:{PEER_PORT + 1}")
            lab.start_agent(site)
            serves(lab, site)
        for site in lab.sites:
            lab.wait_shown([site], {**{other: "unknown" for other in lab.sites}, site: "present"})
        probes = lab.metric("Site1", "cheops_gossip_probes_total")
        lab.wait_metric("Site1", "cheops_gossip_probes_total", probes + 10)
        assert lab.shown("Site1") == {"Site1": "present", "Site2": "unknown", "Site3": "unknown", "Site4": "unknown"}
        lab.configure("Site1", seeds=[f"{lab.address(site)}:{PEER_PORT + 1}" for site in ("Site2", "Site3", "Site4")])
        lab.wait_present()
        assert {name: about["id"] for name, about in lab.view("Site4").items()} == ids
        assert lab.ask("Site4", "compute", "/whoami", headers={"Scope": "Site2"}).json["site"] == "Site2"
        lab.configure("Site1", seeds=None)  # they know each other from now on
        lab.kill("Site3")
        lab.start_agent("Site3")
        lab.wait_present()


def test_a_site_that_reaches_nobody_starts_and_serves(lab):
    lab.isolate("Site2")
    lab.kill("Site2")
    lab.start_agent("Site2")
    lab.wait_shown(["Site2"], {**{site: "unknown" for site in others("Site2")}, "Site2": "present"})
    serves(lab, "Site2")
    answer = lab.ask("Site2", "compute", "/whoami", headers={"Scope": "Site3; Site2"})
    assert answer.status == 200 and answer.json["site"] == "Site2"
    answer = lab.ask("Site2", "compute", "/whoami", headers={"Scope": "Site3"})
    assert answer.status in (502, 503, 504) and "Site3" in answer.json["detail"], answer
    lab.heal()
    lab.wait_present()


# ---- going for good -------------------------------------------------------------------------------------------------------


def test_a_site_is_removed_and_its_name_is_free(lab):
    old = lab.view("Site1")["Site5"]["id"]
    before = lab.wait_stored("Site5", *FOUNDERS)
    lab.site("Site2", "remove", "Site5", "--yes", refused="the authority's key is not at this site; ask at Site1")
    lab.site("Site1", "remove", "Site5", "--yes")
    lab.wait_present(*FOUNDERS)
    # It still runs, and is told; it serves what concerns it alone.
    wait_for(lambda: lab.events("Site5", "the other sites refuse this one"), "Site5 to say that it is refused")
    serves(lab, "Site5")
    answer = lab.ask("Site5", "compute", "/whoami", headers={"Scope": "Site1"})
    assert answer.status >= 400 and answer.header("Cheops-Outcome") != "ran", answer
    # Not with its old key, also after a start; nor if it does not know any more that it was removed.
    lab.kill("Site5")
    since = len(lab.log("Site5"))
    lab.start_agent("Site5")
    wait_for(lambda: lab.events("Site5", "this site was removed: the others no longer talk to it", since), "it to know")
    strangers = {site: lab.metric(site, "cheops_gossip_strangers_total") for site in FOUNDERS}
    lab.kill("Site5")
    lab.path("Site5", "state", "sites").write_bytes(before)
    since = len(lab.log("Site5"))
    lab.start_agent("Site5")
    wait_for(lambda: lab.events("Site5", "this site was removed", since), "somebody to tell it")
    assert any(lab.metric(site, "cheops_gossip_strangers_total") > strangers[site] for site in FOUNDERS)
    assert all("Site5" not in lab.shown(site) for site in FOUNDERS)
    # With another key it is another site.
    lab.kill("Site5")
    shutil.rmtree(lab.path("Site5", "state"))
    lab.join("Site5")
    lab.wait_present()
    assert lab.view("Site3")["Site5"]["id"] != old
    assert lab.ask("Site3", "compute", "/whoami", headers={"Scope": "Site5"}).json["site"] == "Site5"
