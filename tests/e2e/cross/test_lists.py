"""Lists show what lies at other sites as if it were local: a witness's list has what it witnesses, and nothing else of others."""
import json
import pathlib

import demo_process
import pytest
from demo_sites import Sites
from files_lab import Lab, ask, heard, mesh_maker, wait_for

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Three sites where images are indivisible, and their lists have pages and orders by the description."""
    folder = tmp_path_factory.mktemp("lists")
    text = SAMPLE.read_text(encoding="utf-8")
    described = text.replace("    item: /images/{id}\n", "    item: /images/{id}\n    cross: indivisible\n"
                             "    paging: {query: [limit]}\n    sort: [order]\n")
    assert described != text
    (folder / "app.yaml").write_text(described, encoding="utf-8")
    made = Lab(folder, 3, application=str(folder / "app.yaml"))
    mesh_maker.wait_kept(made.sites)
    yield made
    made.stop()


def listed(site, path="/images", away=False, **headers):
    """`away`: some site is, and that is to be seen."""
    def read():
        return ask(site.front + path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = read() if away else heard(read)
    assert answer.status == 200, answer.bytes
    return answer


def names(answer):
    return [each["name"] for each in answer.json["images"]]


def count(site, name, **headers):
    return names(listed(site, **headers)).count(name)


def partial(answer):
    return dict(answer.headers).get("Cheops-Partial")


def make(lab, name, at=1, scope="Site2 % Site1"):
    answer = ask(f"{lab[at].front}/images", "POST", {"Scope": scope} if scope else {}, json_body={"name": name})
    assert answer.status == 201, answer.bytes
    return answer.json["id"]


def wait_known(lab, meta_id, *at):
    for number in at:
        api = lab[number].config["api"]
        wait_for(lambda api=api: ask(f"http://{api}/cheops/v1/replicants/{meta_id}").status == 200, "it to be known")


def test_a_witness_shows_it_and_nothing_else_of_others(lab):
    meta_id = make(lab, "held at 2")
    make(lab, "of 2 alone", at=2, scope=None)
    make(lab, "of 1 alone", at=1, scope=None)
    make(lab, "of 2 and 3", at=2, scope="Site2 & Site3")
    wait_known(lab, meta_id, 1, 2)
    answer = listed(lab[1])
    shown = names(answer)
    assert shown.count("held at 2") == 1 and shown.count("of 1 alone") == 1
    assert "of 2 alone" not in shown and "of 2 and 3" not in shown
    assert shown.index("of 1 alone") < shown.index("held at 2"), "its own come first"
    (element,) = [each for each in answer.json["images"] if each["name"] == "held at 2"]
    assert element["id"] == meta_id and "cheops-replica" not in element
    assert partial(answer) is None
    # The same as asking for it.
    assert ask(f"{lab[1].front}/images/{meta_id}").json == element
    # Where it lies it is in the list, as ever; and a site that has nothing to do with it does not show it.
    assert (count(lab[2], "held at 2"), count(lab[3], "held at 2")) == (1, 0)


def test_each_once_from_several_holders(lab):
    first = make(lab, "of all, at 2", scope="Site2 % Site1 % Site3")
    second = make(lab, "of all, at 3", scope="Site3 % Site1 % Site2")
    wait_known(lab, first, 1, 2, 3)
    wait_known(lab, second, 1, 2, 3)
    for site in lab.sites:
        answer = listed(site)
        assert [names(answer).count(name) for name in ("of all, at 2", "of all, at 3")] == [1, 1], site.name
        assert partial(answer) is None


def test_with_a_session_it_is_there_at_once(lab):
    """Who has made it, and lists it at a witness that may not have heard of it yet, sees it."""
    for number in range(5):
        name = f"session {number}"
        made = ask(f"{lab[2].front}/images", "POST", {"Scope": "Site2 % Site1"}, json_body={"name": name})
        assert made.status == 201, made.bytes
        assert count(lab[1], name, Cheops_Session=dict(made.headers)["Cheops-Session"]) == 1


def test_a_scope_that_names_sites_is_of_these(lab):
    meta_id = make(lab, "scoped")
    wait_known(lab, meta_id, 1, 2)
    assert count(lab[1], "scoped") == 1
    assert count(lab[1], "scoped", Scope="Site1") == 0
    assert count(lab[1], "scoped", Scope="Site2") == 1
    assert count(lab[1], "scoped", Scope="Site1 & Site2") == 1
    assert count(lab[3], "scoped", Scope="Site1") == 0, "asked of Site1 by another agent, it is that site's own list"


def test_sites_are_shown_when_asked_for(lab):
    meta_id = make(lab, "where")
    make(lab, "where, too", at=1, scope=None)
    wait_known(lab, meta_id, 1, 2)
    answer = listed(lab[1], Prefer="cheops-sites")
    by_name = {each["name"]: each["cheops-site"] for each in answer.json["images"]}
    assert (by_name["where"], by_name["where, too"]) == ("Site2", "Site1")
    assert dict(answer.headers)["Preference-Applied"] == "cheops-sites"


def test_it_is_gone_when_it_is_deleted(lab):
    meta_id = make(lab, "short-lived")
    wait_known(lab, meta_id, 1, 2)
    assert count(lab[1], "short-lived") == 1
    assert ask(f"{lab[1].front}/images/{meta_id}", "DELETE").status == 204
    wait_for(lambda: count(lab[1], "short-lived") == 0, "it to be gone from the list")
    assert partial(listed(lab[1])) is None


def test_pages_and_orders_are_of_this_site_and_say_so(lab):
    meta_id = make(lab, "not on the page")
    wait_known(lab, meta_id, 1, 2)
    for query, reason in (("limit=2", "pages"), ("order=name", "order")):
        answer = listed(lab[1], f"/images?{query}")
        assert "not on the page" not in names(answer)
        assert f'"Site2";reason={reason};details=' in partial(answer), partial(answer)
    assert count(lab[1], "not on the page") == 1


def test_no_validator_of_one_site(lab):
    """What one site says of its own list is not true of both."""
    meta_id = make(lab, "validated")
    wait_known(lab, meta_id, 1, 2)
    answer = listed(lab[1], If_None_Match="*")
    assert names(answer).count("validated") == 1
    assert not {"ETag", "Last-Modified", "Content-Length"} & set(dict(answer.headers))
    head = ask(f"{lab[1].front}/images", "HEAD")
    assert head.status == 200 and head.bytes == b""
    assert not {"ETag", "Last-Modified", "Content-Length"} & set(dict(head.headers))


def test_filters_go_along(lab):
    meta_id = make(lab, "filtered")
    wait_known(lab, meta_id, 1, 2)
    assert names(listed(lab[1], "/images?name=filtered")) == ["filtered"]
    assert names(listed(lab[1], "/images?name=nothing-has-this-name")) == []


def test_many(lab):
    """More than is read before an answer begins."""
    ids = [make(lab, f"many {number:03}", scope="Site2 % Site1" if number % 2 else "Site3 % Site1") for number in range(60)]
    for each in ids:
        wait_known(lab, each, 1)
    for number in range(60):
        make(lab, "own " + "x" * 200 + str(number), at=2 + number % 2, scope=None)
    answer = listed(lab[1])
    shown = names(answer)
    assert [shown.count(f"many {number:03}") for number in range(60)] == [1] * 60
    assert not any(name.startswith("own x") for name in shown)
    assert len({each["id"] for each in answer.json["images"]}) == len(shown)
    json.loads(answer.bytes)


def test_the_holder_is_away(lab):
    meta_id = make(lab, "out of reach")
    make(lab, "still here", at=1, scope=None)
    wait_known(lab, meta_id, 1, 2)
    lab[2].kill()
    try:
        answer = listed(lab[1], away=True)
        assert "out of reach" not in names(answer) and "still here" in names(answer)
        assert partial(answer).startswith('"Site2";reason='), partial(answer)
        # Site3 knows nothing of Site2's that only Site1 witnesses; what both know is missing there, too, and said to be.
        assert "still here" not in names(listed(lab[3], away=True))
    finally:
        lab[2].start()
    mesh_maker.wait_reachable(lab.sites)
    wait_for(lambda: count(lab[1], "out of reach") == 1, "its holder to answer again")
    wait_for(lambda: partial(listed(lab[1])) is None, "all to answer again")


def test_this_sites_own_service_is_away(lab):
    """Its list is that of this site first of all: no answer is made up of what others have."""
    meta_id = make(lab, "behind")
    wait_known(lab, meta_id, 1, 2)
    lab[1].service.terminate()
    lab[1].service.wait(30)
    try:
        answer = ask(f"{lab[1].front}/images")
        assert answer.status == 503 and answer.json["type"] == "urn:cheops:problem:no-instance", answer.bytes
    finally:
        port = lab[1].own.rsplit(":", 1)[1]
        lab[1].service = lab[1]._run("service", lab[1].service.args[0], "image", "--listen", f"127.0.0.1:{port}", "--data",
                                     lab[1].folder / "image")
    wait_for(lambda: ask(f"{lab[1].front}/images").status == 200, "the service to be back")
    wait_for(lambda: count(lab[1], "behind") == 1, "it to be shown again")


def test_a_witness_that_starts_again_still_shows_it(lab):
    meta_id = make(lab, "remembered")
    wait_known(lab, meta_id, 1, 2)
    for _ in range(2):
        lab[1].kill()
        lab[1].start()
        mesh_maker.wait_reachable(lab.sites)
        wait_for(lambda: count(lab[1], "remembered") == 1, "it to be shown")


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    demo = demo_process.Demo(tmp_path_factory.mktemp("volumes") / "demo")
    yield Sites(demo)
    demo.stop()


def test_a_scope_of_other_services_says_nothing_of_it(sites):
    """A volume of the sample, as it is described; a filter of its service."""
    front = sites.url("Site1", "compute")
    answer = ask(f"{front}/volumes", "POST", {"Scope": "Site2 % Site1"}, json_body={"name": "far", "size": 1})
    assert answer.status == 201, answer.bytes

    def volumes(path="/volumes", **headers):
        return [each["name"] for each in ask(front + path, headers=headers).json["volumes"]]

    wait_for(lambda: volumes() == ["far"], "it to be in the list of a witness")
    assert volumes(Scope="image: Site2") == ["far"]
    assert volumes(Scope="compute: Site1") == []
    assert volumes("/volumes?name=far") == ["far"]
    assert volumes("/volumes?name=other") == []
