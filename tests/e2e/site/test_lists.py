"""Lists that commands ask an agent for, page by page: `cheops get`, `cheops ops`, `cheops sites`; and agents that answer badly."""
import json

import pytest

from fake_agent import FakeAgent, problem

LISTS = {"get": "replicants", "ops": "operations", "sites": "sites"}


@pytest.fixture(params=list(LISTS))
def command(request):
    return request.param


def page(command, *names, **more):
    return 200, {LISTS[command]: [{"id": name, "name": name} for name in names], **more}


def ask(cheops, command, *answers):
    with FakeAgent(*answers) as agent:
        result = cheops(command, "-o", "json", "--api", agent.address)
    return result, [target for _, target, _ in agent.requests]


def test_all_pages_make_one_list(cheops, command):
    result, targets = ask(cheops, command, page(command, "a", "b", next="b"), page(command, "c", next="c&d"),
                          page(command, "e", next=None))
    assert result.status == 0 and [one["id"] for one in result.json[LISTS[command]]] == ["a", "b", "c", "e"]
    assert len(targets) == 3 and targets[1].endswith("after=b") and targets[2].endswith("after=c%26d")


@pytest.mark.parametrize("last", [{}, {"next": None}, {"next": "a"}], ids=["absent", "null", "for ever"])
def test_a_page_with_nothing_in_it_is_the_last(cheops, command, last):
    result, targets = ask(cheops, command, page(command, "a", next="a"), page(command, **last))
    assert result.status == 0 and len(result.json[LISTS[command]]) == 1 and len(targets) == 2


@pytest.mark.parametrize("answer, said", [
    (problem(500, "x", "Broken", "it is"), "cheops: Broken: it is\n"),
    (b"", "closed the connection without an answer"),
    ((200, {"other": []}), "answers has no list of "),
    ((200, []), "is no JSON object; is it an agent?"),
], ids=["problem", "nothing", "no list", "no object"])
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
def test_a_page_that_cannot_be_had(cheops, command, before, answer, said):
    """Whichever it is: nothing is shown, since it would not be all."""
    result, targets = ask(cheops, command, *[page(command, "a", next="a")] * before, answer)
    assert result.status == 1 and result.out == "" and said in result.err, result
    assert len(targets) == before + 1


def test_a_list_that_is_too_long_says_so(cheops, command):
    many = [f"{number}" for number in range(5000)]
    result, targets = ask(cheops, command, page(command, *many, next="x"))
    assert result.status == 0 and len(json.loads(result.out)[LISTS[command]]) == 10000 and len(targets) == 2
    assert "these are the first 10000; there are more" in result.err
