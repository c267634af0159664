"""What is divided stands in a list once, whole: at each of its sites without a scope, and anywhere with `&`."""
import json
import pathlib

import mesh_maker
import pytest
from demo_process import ask, free_base, wait_for
from files_lab import SAMPLE, Site, heard, stop_all


class NetworkSite(Site):
    """With a network service in place of an image service."""

    def __init__(self, folder, name, base, application):  # pylint: disable=super-init-not-called
        self.folder, self.name = pathlib.Path(folder) / name, name
        self.folder.mkdir(parents=True)
        self.front, self.own = f"http://127.0.0.1:{base + 2}", f"http://127.0.0.1:{base + 11}"
        self.config = {"site": name, "api": f"127.0.0.1:{base}", "peer": f"127.0.0.1:{base + 1}", "threads": 1,
                       "state": str(self.folder / "state"), "application": application, "timeouts": {"stop": "3s"},
                       "services": {"network": {"front": f"127.0.0.1:{base + 2}", "instances": f"127.0.0.1:{base + 11}"}}}
        self.path = self.folder / "agent.yaml"
        self.path.write_text(json.dumps(self.config), encoding="utf-8")
        self.agent = None
        self.service = self._run("service", SAMPLE, "network", "--listen", f"127.0.0.1:{base + 11}", "--data",
                                 self.folder / "network")


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    base = free_base(3)
    made = [NetworkSite(tmp_path_factory.mktemp("divided"), f"Site{i + 1}", base + 100 * i, "sample") for i in range(3)]
    try:
        mesh_maker.init(made[0].path)
        made[0].start()
        for site in made[1:]:
            mesh_maker.join(site, made[0])
            site.start()
        mesh_maker.wait_reachable(made)
        yield made
    finally:
        stop_all(made)


def listed(site, name=None, away=False, **headers):
    """The answer; or of that name, what is shown. `away`: some site is, and that is to be seen."""
    def read():
        return ask(f"{site.front}/pools", headers=headers)
    answer = read() if away else heard(read)
    assert answer.status == 200, answer.bytes
    return [each for each in answer.json["pools"] if each["name"] == name] if name else answer


def partial(answer):
    return dict(answer.headers).get("Cheops-Partial")


def make(sites, name, size, scope="Site1 % Site2", at=0, **more):
    answer = ask(f"{sites[at].front}/pools", "POST", {"Scope": scope, "Prefer": "wait=60"},
                 json_body={"name": name, "size": size, **more})
    assert answer.status in (200, 201), answer.bytes
    return answer.json["id"]


def parts(sites, name):
    """As the services have it."""
    return [[each["size"] for each in ask(f"{site.own}/pools").json["pools"] if each["name"] == name] for site in sites]


def wait_parts(sites, name, expected):
    wait_for(lambda: parts(sites, name) == expected, f"{name} to be divided: {parts(sites, name)}")


def test_it_is_whole_at_each_of_its_sites(sites):
    meta_id = make(sites, "seven", 7)
    wait_parts(sites, "seven", [[4], [3], []])
    for site in sites[:2]:
        wait_for(lambda site=site: len(listed(site, "seven")) == 1, "it to be known")
        (shown,) = listed(site, "seven")
        assert (shown["size"], shown["id"]) == (7, meta_id), site.name
        assert "cheops-replica" not in shown
        assert partial(listed(site)) is None
        # What is read by its id is the same.
        assert ask(f"{site.front}/pools/{meta_id}").json["size"] == 7
        # The site's own part, where that is asked for.
        assert [each["size"] for each in listed(site, "seven", Scope=site.name)] == [4 if site is sites[0] else 3]
    assert listed(sites[2], "seven") == [], "it has nothing to do with it"


def test_with_other_sites_at_once(sites):
    make(sites, "nine", 9, "Site2 % Site1 % Site3")
    wait_parts(sites, "nine", [[3], [3], [3]])
    make(sites, "two", 2)
    wait_parts(sites, "two", [[1], [1], []])
    for site in sites:
        assert [each["size"] for each in listed(site, "nine", Scope="Site1 & Site2 & Site3")] == [9], site.name
        assert [each["size"] for each in listed(site, "two", Scope="Site1 & Site2 & Site3")] == [2], site.name
        # Of the sites that are named, also where this one knows nothing of it.
        assert [each["size"] for each in listed(site, "nine", Scope="Site1 & Site3")] == [6], site.name
        assert [each["size"] for each in listed(site, "two", Scope="Site2 & Site3")] == [1], site.name
    (shown,) = [each for each in listed(sites[2], Scope="Site1 & Site2 & Site3", Prefer="cheops-sites").json["pools"]
                if each["name"] == "nine"]
    assert shown["cheops-site"] == "Site2"


def test_what_is_not_divided_stays(sites):
    assert ask(f"{sites[0].front}/pools", "POST", json_body={"name": "local", "size": 5}).status == 201
    assert ask(f"{sites[1].front}/pools", "POST", json_body={"name": "local there", "size": 6}).status == 201
    make(sites, "alike", 8, "Site1 & Site2")
    wait_parts(sites, "alike", [[8], [8], []])
    make(sites, "divided", 8)
    wait_parts(sites, "divided", [[4], [4], []])
    shown = {each["name"]: each["size"] for each in listed(sites[0]).json["pools"]}
    assert (shown["local"], shown["alike"], shown["divided"]) == (5, 8, 8)
    assert "local there" not in shown
    names = [each["name"] for each in listed(sites[0]).json["pools"]]
    assert len(names) == len(set(names))


def test_many(sites):
    for number in range(20):
        make(sites, f"many {number}", number + 2)
    wait_parts(sites, "many 19", [[11], [10], []])
    for site in sites[:2]:
        wait_for(lambda site=site: {each["name"]: each["size"] for each in listed(site).json["pools"]}.items() >=
                 {f"many {number}": number + 2 for number in range(20)}.items(), "all of them to be shown whole")


def test_a_site_is_away(sites):
    make(sites, "cut", 10)
    wait_parts(sites, "cut", [[5], [5], []])
    sites[1].kill()
    try:
        answer = listed(sites[0], away=True)
        assert [each["size"] for each in answer.json["pools"] if each["name"] == "cut"] == [5]
        assert '"Site2";reason=' in partial(answer)
    finally:
        sites[1].start()
    mesh_maker.wait_reachable(sites)
    wait_for(lambda: [each["size"] for each in listed(sites[0], "cut")] == [10], "it to be whole again")
    assert partial(listed(sites[0])) is None


def test_a_part_is_gone(sites):
    """Somebody deleted it behind Cheops' back: what is left is no whole, and the answer says so."""
    make(sites, "torn", 10)
    wait_parts(sites, "torn", [[5], [5], []])
    (local,) = [each for each in ask(f"{sites[1].own}/pools").json["pools"] if each["name"] == "torn"]
    assert ask(f"{sites[1].own}/pools/{local['id']}", "DELETE").status == 204
    answer = listed(sites[0])
    assert [each["size"] for each in answer.json["pools"] if each["name"] == "torn"] == [5]
    assert partial(answer).startswith('"Site2";reason=part;details='), partial(answer)


def test_deleted_and_started_again(sites):
    meta_id = make(sites, "over", 4)
    wait_parts(sites, "over", [[2], [2], []])
    sites[0].kill()
    sites[0].start()
    mesh_maker.wait_reachable(sites)
    wait_for(lambda: [each["size"] for each in listed(sites[0], "over")] == [4], "it to be whole after a restart")
    assert ask(f"{sites[0].front}/pools/{meta_id}", "DELETE", {"Prefer": "wait=60"}).status in (200, 204)
    for site in sites:
        wait_for(lambda site=site: listed(site, "over") == [], "it to be gone")
