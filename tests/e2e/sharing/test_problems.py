"""docs/problems.md has every problem that an agent can answer with, and no other."""
import re

import pytest
from demo_process import ask


def types_in_the_sources(root):
    """{type: statuses}; the statuses are empty where the source does not say them in the same place."""
    found = {}
    for path in [path for room in ("engine", "proxy", "api", "agent") for path in (root / "src" / room).glob("*.c")]:
        code = path.read_text(encoding="utf-8")
        initialisers = re.findall(r"struct proxy_problem(?: \w+ = |\))\{(.*?)\};", code, re.DOTALL)
        for initialiser in initialisers:
            given = re.search(r"\.type = ([^,]*)", initialiser).group(1)
            names = re.findall(r'"([a-z-]+)"', given)
            assert names or given == "scope_fault_name(diag->fault)", f"{path.name}: which type is `{given}`?"
            statuses = re.findall(r"\d{3}", re.search(r"\.status = ([^,]*)", initialiser).group(1))
            for number, name in enumerate(names):  # `late ? 504 : 502` goes with `late ? "no-answer" : "broken-answer"`
                together = len(names) == 1 or len(statuses) < 2
                pairs = len(names) == len(statuses)  # otherwise it takes more to see which goes with which
                found.setdefault(name, set()).update(statuses if together else [statuses[number]] if pairs else [])
        for status, name in re.findall(r'(?:api_refusal \w+ = \{|\brefuse\((?:refusal|giving), )(\d+), "([a-z-]+)"', code):
            found.setdefault(name, set()).add(status)
        for given, names in re.findall(r'refuse\(ticket,\s*([^"]*?),\s*([^,]*"[a-z-]+"[^,]*)', code):
            for name in re.findall(r'"([a-z-]+)"', names):
                found.setdefault(name, set())
        if "struct proxy_problem" in code:
            types = re.findall(r'\.type = [^,]*"|\.type = scope_fault_name', code)  # others have a member of that name, too
            assert len(initialisers) == len(types), f"{path.name}: a problem that this test does not find"
    for name in re.findall(r'\[SCOPE_FAULT_(?!NONE)\w+\] = \{"([a-z0-9-]+)"', (root / "src/scope/diag.c").read_text()):
        found.setdefault(name, set()).add("400")
    return found


def documented(root):
    """{type: statuses} of the tables in the document."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([0-9, ]+) \| .+ \| .+ \|$", (root / "docs/problems.md").read_text(), re.MULTILINE)
    assert len(rows) == len({name for name, _ in rows}), "a type stands there twice"
    return {name: set(re.findall(r"\d{3}", statuses)) for name, statuses in rows}


def test_every_problem_is_documented(root):
    sources, document = types_in_the_sources(root), documented(root)
    assert len(sources) > 60
    assert set(sources) - set(document) == set(), "not in docs/problems.md"
    assert set(document) - set(sources) == set(), "in docs/problems.md only"
    for name, statuses in sources.items():
        assert statuses <= document[name], name


@pytest.mark.parametrize("method, path, status, kind", [
    ("GET", "/nothing", 404, "no-such-path"), ("DELETE", "/cheops/v1/health", 405, "wrong-method")])
def test_problems_of_the_api(sites, method, path, status, kind):
    answer = ask(sites.sites["Site1"]["api"] + path, method)
    assert (answer.status, answer.problem["type"]) == (status, kind)
