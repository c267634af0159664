"""`|`: the first site that answers, the others given up; nested with `;` in both orders."""
import threading
import time

import pytest
from failover_lab import Hangs, answers, attempts, breaks, request, response, wait_until


def test_nearest_is_asked_first_and_alone_if_it_is_quick(lab):
    """As quick as usual, that is: here it usually takes its time, so that a busy machine is no reason to ask another."""
    lab.start()

    def slow(message):
        time.sleep(0.1)
        return response(body=b"Site2")

    lab[2].service.answer = slow
    lab.warm(2, 3)
    for _ in range(10):
        answer = lab.ask("Site3 | Site2")
        assert answer.body == b"Site2" and attempts(answer) == [("Site2", "200")]
        assert not answer.all(b"Warning")
    assert lab[3].runs == 0 and lab.counter("races") == 0


def test_next_one_is_asked_when_the_nearest_is_slow(lab):
    lab.start()
    hangs = Hangs(lab[2].service)
    answer = lab.ask("Site2 | Site3")
    assert answer.body == b"Site3" and attempts(answer) == [("Site2", "given up"), ("Site3", "200")]
    hangs.wait(hangs.closed)  # by its own agent, which was told by ours
    assert lab.counter("races") == 1 and lab.counter("cancelled_attempts") == 1
    assert lab[2].runs == lab[3].runs == 1


def test_slow_one_may_still_win(lab):
    lab.start()
    third = Hangs(lab[3].service)
    go = threading.Event()

    def slow(message):
        go.wait()
        return response(body=b"Site2")

    lab[2].service.answer = slow
    with lab.client() as wire:
        wire.send(request(Scope="Site2 | Site3"))
        third.wait(third.reached)
        go.set()
        answer = wire.response()
    assert answer.body == b"Site2" and attempts(answer) == [("Site3", "given up"), ("Site2", "200")]
    third.wait(third.closed)


def test_failure_does_not_wait(lab):
    """One that fails has the next one started at once; one that says `not now` as well."""
    lab.start(count=4)
    lab.warm(3, 4)
    lab.kill(2)
    lab[3].service.answer = answers(503)
    answer = lab.ask("Site2 | Site3 | Site4")
    assert answer.body == b"Site4"
    assert attempts(answer) == [("Site2", "connection_refused"), ("Site3", "503"), ("Site4", "200")]
    assert lab.counter("failovers") == 2 and lab.counter("races") == 0


@pytest.mark.parametrize("first, second", [(503, 504), (502, 502)])
def test_all_fail(lab, first, second):
    lab.start()
    lab[2].service.answer, lab[3].service.answer = answers(first, b"2"), answers(second, b"3")
    answer = lab.ask("Site2 | Site3")
    assert (answer.status, answer.body) == (first, b"2")


def test_all_break(lab):
    lab.start()
    for n in (2, 3):
        breaks(lab[n].service)
    answer = lab.ask("Site2 | Site3")
    assert (answer.status, answer.problem) == (503, "all-sites-failed")
    assert [(entry["site"], entry["status"]) for entry in answer.json["tried"]] == [("Site2", 502), ("Site3", 502)]


def test_not_found_is_an_answer(lab):
    lab.start()
    hangs = Hangs(lab[2].service)
    lab[3].service.answer = answers(404)
    answer = lab.ask("Site2 | Site3")
    assert (answer.status, answer.body) == (404, b"no")
    hangs.wait(hangs.closed)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_what_must_not_run_twice_is_no_race(lab, method):
    lab.start(Site1={"timeouts": {"answer": "2s"}})
    answer = lab.ask("Site3 | Site2", method, body=b"x")
    assert answer.body == b"Site2"  # the nearest
    assert answer.one(b"Warning") == b'299 - "the sites of `|` were tried one after the other: %s is not safe to run twice"' % method.encode()
    hangs = Hangs(lab[2].service)
    lab[2].service.drop_connections()
    answer = lab.ask("Site3 | Site2", method, body=b"x")
    assert answer.status in (502, 504) and answer.one(b"Warning")
    assert lab[3].runs == 0
    lab.kill(2)
    answer = lab.ask("Site3 | Site2", method, body=b"x")
    assert answer.body == b"Site3" and attempts(answer)[0][0] == "Site2"
    del hangs


def test_body_of_a_race_reaches_everyone(lab):
    """A GET may have one. Each site gets the same bytes."""
    lab.start()
    hangs = Hangs(lab[2].service)
    body = bytes(range(256)) * 200
    assert lab.ask("Site2 | Site3", body=body).body == b"Site3"
    hangs.wait(hangs.closed)
    assert lab[2].service.requests[0].body == lab[3].service.requests[0].body == body


def test_here_takes_part(lab):
    lab.start(count=2)
    assert attempts(lab.ask("Site2 | Site1")) == [("Site1", "200")]
    hangs = Hangs(lab[1].service)
    lab[1].service.drop_connections()
    answer = lab.ask("Site2 | Site1")
    assert answer.body == b"Site2" and attempts(answer) == [("Site1", "given up"), ("Site2", "200")]
    hangs.wait(hangs.closed)


def test_interim_answers_of_a_race_stay_out_of_it(lab):
    lab.start()
    hangs = Hangs(lab[2].service, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    lab[3].service.answer = lambda message: b"HTTP/1.1 102 Processing\r\n\r\n" + response(body=b"Site3")
    assert lab.ask("Site2 | Site3").body == b"Site3"
    hangs.wait(hangs.closed)


def test_client_that_leaves_a_race(lab):
    lab.start()
    hanging = [Hangs(lab[n].service) for n in (1, 2, 3)]
    wire = lab.client()
    wire.send(request(Scope="Site1 | Site2 | Site3"))
    for hangs in hanging:
        hangs.wait(hangs.reached)
    wire.abort()
    for hangs in hanging:
        hangs.wait(hangs.closed)
    assert lab.counter("cancelled_attempts") == 3
    wait_until(lambda: lab[1].agent.api("/cheops/v1/health")[0] == 200)


def test_client_that_leaves_one_place(lab):
    """The other agent notices, and its service: also without a choice."""
    lab.start(count=2)
    hangs = Hangs(lab[2].service)
    wire = lab.client()
    wire.send(request(Scope="Site2"))
    hangs.wait(hangs.reached)
    wire.abort()
    hangs.wait(hangs.closed)


def test_reload_in_the_middle_of_a_race(lab):
    """And a site is removed while the request is under way there: it is taken away, and the race goes on."""
    lab.start()
    second, third = Hangs(lab[2].service), threading.Event()

    def slow(message):
        third.wait()
        return response(body=b"Site3")

    lab[3].service.answer = slow
    with lab.client() as wire:
        wire.send(request(Scope="Site1; Site2 | Site3"))  # Site1 is quick, so refuse it first
        assert wire.response().body == b"Site1"
        lab[1].refuse()
        wire.send(request(Scope="Site1; Site2 | Site3"))
        second.wait(second.reached)
        lab[3].service.wait(lambda: lab[3].service.accepted > 0)
        agent = lab[1].agent
        agent.config["timeouts"] = {"idle": "50s"}
        agent.write()
        assert agent.reload()
        lab.shut_out(2, "remove")
        second.wait(second.closed)
        third.set()
        answer = wire.response()
        assert answer.body == b"Site3"
        assert attempts(answer) == [("Site1", "destination_unavailable"), ("Site2", "destination_unavailable"), ("Site3", "200")]
        wire.send(request(Scope="Site3"))
        assert wire.response().body == b"Site3"


def takes_clients(lab):
    try:
        lab.client().close()
        return True
    except OSError:
        return False


def test_stop_in_the_middle_of_a_race(lab):
    lab.start()
    hangs, go = Hangs(lab[2].service), threading.Event()

    def slow(message):
        go.wait()
        return response(body=b"Site3")

    lab[3].service.answer = slow
    with lab.client() as wire:
        wire.send(request(Scope="Site2 | Site3"))
        hangs.wait(hangs.reached)
        lab[3].service.wait(lambda: lab[3].service.accepted > 0)
        lab[1].agent.signal(15)
        wait_until(lambda: not takes_clients(lab), "the front to be closed")
        go.set()
        answer = wire.response()
    assert answer.body == b"Site3" and answer.closes and lab[1].agent.wait_exit() == 0


# ---- both in one --------------------------------------------------------------------------------------------------------


def test_choice_and_then_another(lab):
    """`(2 | 3); 4`: 4 is asked when both have failed."""
    lab.start(count=4)
    second, third = Hangs(lab[2].service), Hangs(lab[3].service)
    with lab.client() as wire:
        wire.send(request(Scope="(Site2 | Site3); Site4"))
        second.wait(second.reached)
        third.wait(third.reached)
        lab.kill(2)
        lab[3].service.wait(lambda: True)
        assert lab[4].runs == 0
        lab.kill(3)
        answer = wire.response()
    assert answer.body == b"Site4"
    assert attempts(answer) == [("Site2", "connection_terminated"), ("Site3", "connection_terminated"), ("Site4", "200")]


def test_choice_of_rows(lab):
    """`(2; 4) | 3`: 2 and 3 race, 4 is asked when both have failed."""
    lab.start(count=4)
    lab[2].service.answer = lab[3].service.answer = answers(503)
    answer = lab.ask("(Site2; Site4) | Site3")
    assert answer.body == b"Site4" and attempts(answer) == [("Site2", "503"), ("Site3", "503"), ("Site4", "200")]
    lab[3].service.usual()
    lab[2].service.forget()
    hangs = Hangs(lab[2].service)
    lab[2].service.drop_connections()
    assert lab.ask("(Site2; Site4) | Site3").status == 200 and lab[4].runs == 1
    del hangs


def test_many_at_once(lab):
    """Races, rows and single places at the same time, with sites that come and go: every request is answered."""
    lab.start(count=4, threads=2)
    lab[2].service.answer = answers(503)
    breaks(lab[3].service)
    scopes = ["Site2; Site3; Site4", "Site2 | Site3 | Site4", "(Site2 | Site3); Site4", "(Site2; Site4) | Site3", "Site3; Site1"]
    wrong = []

    def client(number):
        with lab.client() as wire:
            for turn in range(40):
                scope = scopes[(number + turn) % len(scopes)]
                wire.send(request("GET", Scope=scope, body=b"x" * (turn * 100)))
                answer = wire.response()
                if answer.status != 200 or answer.body not in (b"Site4", b"Site1"):
                    wrong.append((scope, answer))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
