"""cheops sites: what it makes of an agent's answer, as a table, as JSON and as YAML."""
import datetime
import json
import re
import subprocess

import pytest
import yaml

from fake_agent import BOUND_S, FakeAgent, problem

HOUR_S, DAY_S = 3600, 86400


def ago(seconds):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def site(name, state="alive", shown="present", since=None, **more):
    return {"name": name, "id": "0123456789abcdef", "state": state, "shown": shown, "since": since, "heard": None,
            "rtt_ms": None, "estimate_ms": None, "version": "0.1.0", "address": "192.0.2.1:8070", "authority": False,
            "tags": {}, "services": {}, "certificate": {"expires": ago(-60.5 * DAY_S)}, "path": None, **more}


def ask(cheops, answer, *arguments, **options):
    with FakeAgent(answer if isinstance(answer, tuple) else (200, answer)) as agent:
        result = cheops("sites", "--api", agent.address, *arguments, **options)
    result.requests = agent.requests
    return result


def table(result):
    assert result.status == 0 and result.err == "", result
    return [re.split(r"  +", line) for line in result.out.splitlines()]


def mesh():
    return {"site": "Site1", "from": "Site1", "sites": [
        site("Site1", since=ago(2.5 * HOUR_S), authority=True, estimate_ms=0.0, tags={"region": "west", "edge": ""}),
        site("Site2", since=ago(3 * DAY_S), rtt_ms=8.123, estimate_ms=9.4, path={"state": "up", "age_ms": 12, "rtt_ms": 8.05}),
        site("Site3", "suspect", "present", ago(90.5 * 60), rtt_ms=0.35, path={"state": "down", "age_ms": 4200, "rtt_ms": None}),
        site("Site4", "lost", "unknown", "2024-05-01T12:03:14Z", rtt_ms=123.4, estimate_ms=130.0,
             path={"state": "unknown", "age_ms": None, "rtt_ms": None}),
        site("Site5", "left", "absent", "2024-05-01T12:03:14Z", certificate={"expires": ago(-13.5 * DAY_S)}),
        site("Site6", "revoked", "absent", "2024-05-01T12:03:14Z", certificate={"expires": ago(5.5 * HOUR_S)}),
    ]}


def test_the_table(cheops):
    result = ask(cheops, mesh(), env={"TZ": "UTC"})
    age = f"({(datetime.datetime.now(datetime.timezone.utc) - datetime.datetime(2024, 5, 1, 12, 3, 14, tzinfo=datetime.timezone.utc)).days}d)"
    assert table(result) == [
        ["NAME", "STATE", "RTT", "ESTIMATE", "PATH", "VERSION", "TAGS", "EXPIRES"],
        ["Site1 (this site, authority)", "present 2h", "-", "0.00ms", "-", "0.1.0", "region=west,edge", "60d"],
        ["Site2", "present 3d", "8.1ms", "9.4ms", "up 8.1ms", "0.1.0", "-", "60d"],
        ["Site3", "suspect 1h", "0.35ms", "-", "down 4s", "0.1.0", "-", "60d"],
        ["Site4", f"unknown since 2024-05-01 12:03:14 {age}", "123ms", "130ms", "unknown", "0.1.0", "-", "60d"],
        ["Site5", "absent since 2024-05-01 12:03:14 (left)", "-", "-", "-", "0.1.0", "-", "13d !"],
        ["Site6", "revoked", "-", "-", "-", "0.1.0", "-", "expired 5h ago !"],
    ]
    starts = [[match.start() for match in re.finditer(r"(?:(?<=  )|^)\S", line)] for line in result.out.splitlines()]
    assert all(start == starts[0] for start in starts)
    assert result.requests == [("GET", "/cheops/v1/sites", None)]


def test_today_needs_no_date(cheops):
    result = ask(cheops, {"site": "A", "sites": [site("B", "lost", "unknown", ago(1))]}, env={"TZ": "UTC"})
    assert re.search(r"unknown since (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(\d+s\)", result.out)  # it may be midnight


def test_times_are_those_of_the_machine(cheops):
    answer = {"site": "A", "sites": [site("B", "left", "absent", "2024-05-01T12:03:14Z")]}
    assert "absent since 2024-05-01 14:03:14 (left)" in ask(cheops, answer, env={"TZ": "XXX-2"}).out


def test_since_may_be_unknown(cheops):
    answer = {"site": "A", "sites": [site("A"), site("B", "lost", "unknown"), site("C", "left", "absent")]}
    assert [line[1] for line in table(ask(cheops, answer))[1:]] == ["present", "unknown", "absent (left)"]


def test_distances_from_another_site(cheops):
    answer = {"site": "Site1", "from": "Site 2/ü", "sites": [site("Site1", rtt_ms=8.0, estimate_ms=9.0), site("Site3", estimate_ms=30.0)]}
    result = ask(cheops, answer, "--from", "Site 2/ü")
    assert result.requests == [("GET", "/cheops/v1/sites?from=Site%202%2F%C3%BC", None)]
    assert result.out.startswith("Distances from Site 2/ü, as known at Site1:\nNAME ")
    assert [line[2:4] for line in table(result)[2:]] == [["8.0ms", "9.0ms"], ["-", "30ms"]]


def test_an_unknown_site_is_told(cheops):
    result = ask(cheops, problem(404, "unknown-site", "No such site", "there is no site `Nix`"), "--from", "Nix")
    assert result.status == 1 and result.out == "" and result.err == "cheops: No such site: there is no site `Nix`\n"


def test_json_and_yaml_are_the_answer(cheops):
    answer = mesh()
    assert ask(cheops, answer, "-o", "json").json == answer
    result = ask(cheops, answer, "--output", "yaml")
    assert result.status == 0 and yaml.safe_load(result.out) == answer


@pytest.mark.parametrize("name", ["yes", "null", "007", "1e3", "- a", "a: b", "#x", "", " a ", "*x", "&x", "!x", "%x", "@x", "`x`",
                                  "'x'", '"x"', "a\nb", "a\tb", "Zürich", "\U0001f600", "a\\b", "2024-05-01", "~", "{a}", "0x1f"])
def test_yaml_keeps_strings_strings(cheops, name):
    answer = {"site": name, "sites": [site(name, tags={name or "x": name}, services={"x": [[name], {name or "y": [name, 1]}]})]}
    assert yaml.safe_load(ask(cheops, answer, "-o", "yaml").out) == answer


def test_an_old_agent_says_less(cheops):
    """What an answer lacks, or has as something else than expected, is shown as not known."""
    answer = {"site": "A", "sites": [{"name": "A", "state": "present"}, {"name": "B", "rtt_ms": 7}, {}, 7, None, [],
                                     {"name": 7, "state": [], "since": "yesterday", "rtt_ms": "far", "tags": [], "path": 3,
                                      "certificate": {"expires": 12}, "version": {}}]}
    lines = table(ask(cheops, answer))
    assert len(lines) == 8 and all(len(line) == 8 for line in lines)
    assert lines[1][0] == "A (this site)" and lines[2][0] == "B" and lines[2][2] == "7.0ms"
    assert [line[1] for line in lines[3:]] == 5 * ["-"]


def test_no_list_of_sites(cheops):
    for answer in ({}, {"sites": 7}, {"sites": {"a": 1}}):
        result = ask(cheops, answer)
        assert result.status == 1 and result.out == "" and "has no list of sites in it; is it an agent?" in result.err


EVIL = "\033[2J\x07\u202e\u2028\x9b31m\x7f"


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_names_cannot_disturb_a_terminal(cheops, form):
    answer = {"site": EVIL, "from": "x" + EVIL, "sites": [
        site(EVIL, EVIL, EVIL, EVIL, version=EVIL, tags={EVIL: EVIL}, path={"state": EVIL}, services={EVIL: EVIL})]}
    result = ask(cheops, answer, "-o", form)
    assert result.status == 0 and not set(result.out) & set(EVIL) - set("[2J31m")
    if form == "json":
        assert result.json == answer
    if form == "yaml":
        assert yaml.safe_load(result.out) == answer


def test_many_sites(cheops):
    answer = {"site": "Site0", "sites": [site(f"Site{i}", tags={"n": str(i)}) for i in range(20000)]}
    assert len(ask(cheops, answer).out.splitlines()) == 20001


def test_colours_where_they_are_wanted(cheops):
    answer = mesh()
    plain = ask(cheops, answer, "--color", "never").out
    coloured = ask(cheops, answer, "--color", "always").out
    assert "\033" not in plain == ask(cheops, answer).out and re.sub(r"\033\[\d*m", "", coloured) == plain
    for text in ("\033[32mpresent 3d\033[0m", "\033[33msuspect 1h\033[0m", "\033[31mrevoked\033[0m", "\033[33m13d !\033[0m",
                 "\033[31mexpired 5h ago !\033[0m", "\033[31mdown 4s\033[0m"):
        assert text in coloured
    with FakeAgent((200, answer)) as agent:
        status, seen = cheops.terminal("sites", "--api", agent.address)
        assert status == 0 and "\033[31mrevoked" in seen
        assert "\033" not in cheops.terminal("sites", "--api", agent.address, env={"NO_COLOR": "1"})[1]


def test_watching_shows_it_again(cheops):
    """Also after the agent was away for a while."""
    answers = [(200, {"site": "A", "sites": [site("A")]}), b"", (200, {"site": "A", "sites": [site("A"), site("B")]})]
    with FakeAgent(*answers) as agent:
        process = subprocess.Popen([cheops.path, "sites", "--watch", "-o", "json", "--api", agent.address],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.kill()
        _, err = process.communicate(timeout=BOUND_S)
    assert [len(one["sites"]) for one in seen] == [1, 2] and b"closed the connection without an answer" in err


def test_watching_ends_where_nobody_ever_answered(cheops):
    result = ask(cheops, problem(500, "x", "Broken", "it is"), "--watch")
    assert result.status == 1 and result.err == "cheops: Broken: it is\n"
