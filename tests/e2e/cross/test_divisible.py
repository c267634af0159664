"""`%` on what is divisible: each site has a part, and the parts always add up."""
import mesh_maker
import pytest
from demo_process import ask, wait_for
from pool_lab import PoolLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = PoolLab(tmp_path_factory.mktemp("divisible"))
    yield made
    made.stop()


def test_each_site_has_a_part_and_reading_gives_the_whole(lab):
    hosts = [f"h{i}" for i in range(10)]
    answer = lab[1].ask("POST", "/pools", {"name": "ten", "size": 10, "hosts": hosts}, Scope="Site1 % Site2 % Site3",
                        Prefer="wait=60")
    assert answer.status == 201, answer
    assert (answer.json["size"], answer.json["hosts"]) == (10, hosts)  # the answer is of the whole
    assert lab.parts("ten") == [4, 3, 3]
    shares = lab.parts("ten", "hosts")
    assert sorted(sum(shares, [])) == sorted(hosts) and sorted(map(len, shares)) == [3, 3, 4]
    for site in lab.sites:
        shown = site.read(f"/pools/{answer.json['id']}")
        assert (shown.status, shown.json["size"], shown.json["id"]) == (200, 10, answer.json["id"]), site.name
        assert sorted(shown.json["hosts"]) == sorted(hosts) and shown.json["hosts"][:len(shares[0])] == shares[0]
        assert shown.header("Cheops-Partial") is None
        assert shown.header("ETag") is None
    known = ask(f"http://{lab[2].config['api']}/cheops/v1/replicants/{answer.json['id']}").json
    assert (known["span"], known["prime"]) == ("divided", "Site1")


def test_it_may_be_asked_for_at_a_site_that_gets_no_part(lab):
    answer = lab[3].ask("POST", "/pools", {"name": "afar", "size": 7}, Scope="Site2 % Site1", Prefer="wait=60")
    assert (answer.status, answer.json["size"]) == (201, 7)
    assert lab.parts("afar") == [3, 4, None]  # the prime stands first
    assert lab[3].ask("GET", f"/pools/{answer.json['id']}").status == 404
    assert lab[1].read(f"/pools/{answer.json['id']}").json["size"] == 7


@pytest.mark.parametrize("header, parts", [
    ("Site1=1 Site2=9 Site3=2", [1, 9, 2]),
    ("weights; Site1=1 Site2=2 Site3=1", [3, 6, 3]),
    ("Site1=0, Site2=12, Site3=0", [0, 12, 0]),
    ("evenly", [4, 4, 4]),
])
def test_as_the_request_says(lab, header, parts):
    name = f"by {header}"
    path = lab.make(name, headers={"Cheops_Divide": header}, size=12)
    assert lab.parts(name) == parts
    assert lab[2].read(path).json["size"] == 12


@pytest.mark.parametrize("header, status, wanted", [
    ("Site1=4 Site2=2", 400, "column 16: nothing is said of `Site3`"),
    ("Site1=4 Site2=2 Site3=1", 400, "add up to 7, but `/size` is 12"),
    ("Site1=4 Site9=2 Site3=6", 400, "column 9: `Site9` is no site of this resource"),
    ("a lot", 400, "Cheops-Divide: column"),
])
def test_a_header_that_makes_no_sense_is_refused_before_anything_runs(lab, header, status, wanted):
    answer = lab[1].ask("POST", "/pools", {"name": "never", "size": 12}, Scope="Site1 % Site2 % Site3", Cheops_Divide=header)
    assert answer.status == status and answer.problem["type"] == "bad-division" and wanted in answer.json["detail"], answer
    assert lab.parts("never") == [None, None, None]


def test_what_cannot_be_divided_is_refused(lab):
    for body, wanted in (({"size": "many"}, "/size"), ({"size": 1, "hosts": {}}, "/hosts")):
        answer = lab[1].ask("POST", "/pools", {"name": "never", **body}, Scope="Site1 % Site2")
        assert answer.status == 400 and wanted in answer.json["detail"], answer
    answer = ask(lab[1].front + "/pools", "POST", {"Scope": "Site1 % Site2"}, body=b'{"name": "never", "size": 1, "size": 2}')
    assert answer.status == 400 and "twice" in answer.json["detail"]
    answer = lab[1].ask("POST", "/pools", {"name": "never", "size": 1}, Scope="Site1 & Site2", Cheops_Divide="evenly")
    assert answer.status == 400 and "%" in answer.json["detail"]
    assert lab.parts("never") == [None, None, None]


def test_nobody_can_forge_a_division(lab):
    path = lab.make("forged", size=9)
    answer = lab[1].ask("PATCH", path, {"size": 12}, cheops_division="AQE", Prefer="wait=60")
    assert answer.status == 200
    assert lab.parts("forged") == [4, 4, 4]
    for site in lab.sites:  # and no service ever sees one
        log = (site.folder / "service.log").read_text(encoding="utf-8", errors="replace").lower()
        assert "cheops-division" not in log


def test_an_update_divides_again_and_keeps_the_weights(lab):
    path = lab.make("again", headers={"Cheops_Divide": "Site1=6 Site2=3 Site3=1"}, size=10)
    answer = lab[2].ask("PATCH", path, {"size": 20}, Prefer="wait=60")
    assert (answer.status, answer.json["size"], answer.header("Cheops-Part")) == (200, 20, "Site2")
    assert lab.parts("again") == [12, 6, 2]
    answer = lab[3].ask("PUT", path, {"name": "again", "size": 21}, Prefer="wait=60", Cheops_Divide="evenly")
    assert (answer.status, answer.json["size"]) == (200, 21)
    assert lab.parts("again") == [7, 7, 7]
    assert lab[1].ask("PATCH", path, {"size": 22}, Prefer="wait=60").status == 200
    assert lab.parts("again") == [8, 7, 7]  # one more moves one
    assert {site.read(path).json["size"] for site in lab.sites} == {22}


def test_an_update_of_something_else_leaves_the_parts_alone(lab):
    path = lab.make("other", headers={"Cheops_Divide": "Site1=6 Site2=3 Site3=1"}, size=10, hosts=["a", "b"])
    before = lab.parts("other"), lab.parts("other", "hosts")
    assert lab[2].ask("PATCH", path, {"label": "me"}, Prefer="wait=60").status == 200
    assert (lab.parts("other"), lab.parts("other", "hosts")) == before
    assert lab.parts("other", "label") == ["me"] * 3


def test_what_is_there_is_divided_anew(lab):
    """The header alone: the whole is what the sites have."""
    path = lab.make("anew", size=10, hosts=["a", "b", "c"])
    assert lab[3].ask("POST", path + "/grow", {"by": 6}, Prefer="wait=60").status == 200
    lab.settled(path)
    answer = lab[2].ask("PATCH", path, {"label": "me"}, Cheops_Divide="weights; Site1=2 Site2=1 Site3=1", Prefer="wait=60")
    assert (answer.status, answer.json["size"], sorted(answer.json["hosts"])) == (200, 16, ["a", "b", "c"]), answer
    assert lab.parts("anew") == [8, 4, 4] and lab.parts("anew", "label") == ["me"] * 3
    assert sorted(sum(lab.parts("anew", "hosts"), [])) == ["a", "b", "c"]
    lab.settled(path)
    assert lab[1].ask("PATCH", path, {}, Cheops_Divide="Site1=0 Site2=15 Site3=1", Prefer="wait=60").status == 200
    assert lab.parts("anew") == [0, 15, 1]
    lab.settled(path)
    refused = lab[1].ask("PATCH", path, {}, Cheops_Divide="Site1=0 Site2=15 Site3=2")
    assert refused.status == 400 and "`/size` is 16" in refused.json["detail"]
    lab[3].kill()
    try:
        refused = lab[1].ask("PATCH", path, {}, Cheops_Divide="evenly")
        assert refused.status == 503 and "Site3" in refused.json["detail"], refused
    finally:
        lab[3].start()
    mesh_maker.wait_reachable(lab.sites)
    lab.settled(path)
    assert lab.parts("anew") == [0, 15, 1]


def test_changes_by_so_much_are_divided_and_lose_nothing(lab):
    path = lab.make("grows", headers={"Cheops_Divide": "Site1=2 Site2=1 Site3=1"}, size=4)
    for number in range(12):
        answer = lab[number % 3 + 1].ask("POST", path + "/grow", {"by": 1})
        assert answer.status == 200 and answer.header("Cheops-Part") == f"Site{number % 3 + 1}"
    lab.settled(path)
    assert sum(lab.parts("grows")) == 16
    assert lab[1].ask("POST", path + "/grow", {"by": 40}, Prefer="wait=60").status == 200
    assert [shown.read(path).json["size"] for shown in lab.sites] == [56] * 3
    assert all(abs(part - share) <= 12 for part, share in zip(lab.parts("grows"), (28, 14, 14)))
    # As given, too; and it does not count for what comes later.
    before = lab.parts("grows")
    assert lab[1].ask("POST", path + "/grow", {"by": 5}, Cheops_Divide="Site1=0 Site2=0 Site3=5", Prefer="wait=60").status == 200
    assert lab.parts("grows") == [before[0], before[1], before[2] + 5]
    assert lab[1].ask("PATCH", path, {"size": 8}, Prefer="wait=60").status == 200
    assert lab.parts("grows") == [4, 2, 2]


def test_what_the_services_count_is_put_together(lab):
    path = lab.make("used", size=9)
    assert lab[1].ask("POST", path + "/allocate", {"count": 9}, Prefer="wait=60").status == 200
    shown = lab[2].read(path).json
    assert (shown["used"], shown["status"], lab.parts("used", "used")) == (9, "full", [3, 3, 3])
    assert lab[3].ask("POST", path + "/release", {"count": 1}, Prefer="wait=60").status == 200
    shown = lab[2].read(path).json
    assert (shown["used"], shown["status"]) == (8, "available")


def test_one_site_is_asked_for_its_part(lab):
    path = lab.make("parts", headers={"Cheops_Divide": "Site1=6 Site2=3 Site3=1"}, size=10)
    assert [lab[1].ask("GET", path, Scope=f"Site{number}").json["size"] for number in (1, 2, 3)] == [6, 3, 1]
    for scope in ("Site1 & Site2", "Site1 % Site2", "all()"):
        shown = lab[3].read(path, Scope=scope)
        assert (shown.status, shown.json.get("size")) == (200, 10), (scope, shown)
    local = lab[2].pools()["parts"]["id"]
    assert lab[2].ask("GET", f"/pools/{local}").json["size"] == 3  # by the id there: as the service has it


def test_conditions_would_be_judged_by_a_part(lab):
    path = lab.make("conditions", size=3)
    answer = lab[1].ask("PATCH", path, {"size": 4}, If_Match='"x"')
    assert answer.status == 400 and answer.problem["type"] == "condition-on-parts", answer
    assert lab.parts("conditions") == [1, 1, 1]
    answer = ask(lab[1].front + path, "PATCH", {"Content-Type": "application/json-patch+json"},
                 body=b'[{"op": "replace", "path": "/size", "value": 9}]')
    assert answer.status == 415, answer
    assert lab.parts("conditions") == [1, 1, 1]
    assert lab[1].read(path, If_None_Match="*").json["size"] == 3


def test_delete_leaves_no_part(lab):
    path = lab.make("gone", size=3)
    assert lab[2].ask("DELETE", path, Prefer="wait=60").status == 204
    assert lab.parts("gone") == [None] * 3
    for site in lab.sites:
        wait_for(lambda site=site: site.ask("GET", path).status in (404, 410), f"{site.name} to know that it is gone")
    path = lab.make("gone", size=5)  # and the name is free again
    assert lab[3].read(path).json["size"] == 5


def test_what_is_gone_is_said_at_once(lab):
    """All parts say the same: it is passed on with its length, so that nobody waits for more."""
    for number in range(5):
        path = lab.make(f"soon gone {number}", size=3)
        assert lab[2].ask("DELETE", path).status == 204
        lab_answers = [site.ask("GET", path).status for site in lab.sites]
        assert set(lab_answers) <= {200, 404, 410}, lab_answers


def test_it_is_shown_and_compared(lab, cheops):
    path = lab.make("shown", headers={"Cheops_Divide": "weights; Site1=3 Site2=2 Site3=1"}, size=12)
    meta_id = path.split("/")[-1]
    shown = cheops("get", meta_id, "--api", lab[2].config["api"], "-o", "json").json
    assert shown["division"] == [{"site": "Site1", "weight": 3}, {"site": "Site2", "weight": 2}, {"site": "Site3", "weight": 1}]
    assert ", eventual, divided Site1=3 Site2=2 Site3=1\n" in cheops("get", meta_id, "--api", lab[2].config["api"]).out
    # What each has its own part of is not compared, and that is said.
    done = cheops("get", meta_id, "--verify", "--api", lab[2].config["api"])
    assert done.status == 0 and "Not compared: /size, /hosts, /used, /status\n" in done.out, done
    # Anything else is.
    local = lab[3].pools()["shown"]["id"]
    assert ask(f"{lab[3].own}/pools/{local}", "PATCH", json_body={"label": "behind"}).status == 200
    done = cheops("get", meta_id, "--verify", "--api", lab[1].config["api"])
    assert done.status != 0 and "/label" in done.out
    done = cheops("repair", meta_id, "--from", "Site1", "--api", lab[1].config["api"])
    assert done.status != 0 and "each site has a part of it" in done.err, done
