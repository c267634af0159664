"""The policy for peers: two sites of one mesh, of which one says what the other may ask."""
import json
import threading
import time

import pytest

import tls_lab  # noqa: F401
from tls_lab import proxy_lab
from proxy_lab import PATIENCE_S, Agent, free_port, request, response, wait_until


class Mesh:
    """Site1, with a policy, and Site2, which asks it. `ask` sends a request to Site2's front with scope Site1."""

    def __init__(self, cheops, folder, play, **policy):
        self.cheops = cheops
        self.near, self.far = play(), play()
        self.agents = []
        for number, service in ((1, self.near), (2, self.far)):
            config = proxy_lab.describe(f"Site{number}", {"compute": [service.port], "image": [service.port]},
                                        peer=f"127.0.0.1:{free_port()}", state=str(folder / f"state{number}"),
                                        tags={"tier": f"tier{number}"})
            if number == 1:
                config["policy"] = policy
            path = folder / f"Site{number}.yaml"
            path.write_text(json.dumps(config))
            self.run("init" if number == 1 else "join", path, *([] if number == 1 else [self.token()]))
            self.agents.append(Agent(cheops.path, folder, config))
        self.site1, self.site2 = self.agents
        wait_until(self.knows, "two sites that know each other")

    def run(self, action, path, *arguments):
        result = self.cheops("site", action, *arguments, "-c", str(path))
        assert result.status == 0, result
        return result.out

    def token(self):
        text = self.run("token", self.agents[0].path, "Site2")
        return next(word for word in text.split() if word.startswith("cheops1_"))

    def knows(self):
        return all(self.cheops("sites", "--api", agent.config["api"], "-o", "json").out.count('"present"') >= 2
                   for agent in self.agents)

    def ask(self, method="GET", service="compute", **fields):
        return self.site2.ask(method, service=service, Scope="Site1", **fields)

    def set_policy(self, **policy):
        self.site1.config["policy"] = policy
        self.site1.write()
        assert self.site1.reload()

    def stop(self):
        for agent in self.agents:
            agent.stop()


@pytest.fixture
def mesh(cheops, tmp_path, play):
    made = []

    def make(**policy):
        made.append(Mesh(cheops, tmp_path, play, **policy))
        return made[0]

    yield make
    for mesh in made:
        mesh.stop()


def test_rules(mesh):
    mesh = mesh(rules=[{"name": "partners", "sites": ["Site2"], "services": ["image"], "operations": ["read"]}])
    assert mesh.ask(service="image").status == 200
    answer = mesh.ask("POST", "image", body=b"x")
    assert answer.status == 403 and answer.problem == "policy-refused", answer
    assert answer.json["detail"] == ("the rule `partners` of Site1 lets Site2 read image; this request would write image "
                                     "(POST)")
    answer = mesh.ask()
    assert answer.status == 403 and "would read compute" in answer.json["detail"], answer
    assert mesh.site1.counter("cheops_policy_refused_total") == 2
    assert len(mesh.near.requests) == 1

    mesh.set_policy(others="refuse")
    answer = mesh.ask(service="image")
    assert answer.status == 403 and "no rule of Site1 names Site2" in answer.json["detail"], answer
    mesh.set_policy(others="refuse", rules=[{"name": "tagged", "tags": {"tier": "tier2"}}])
    assert mesh.ask("DELETE").status == 200
    mesh.set_policy(rules=[{"name": "nobody", "services": []}])
    assert "lets Site2 do nothing" in mesh.ask().json["detail"]
    assert mesh.site1.ask(service="compute").status == 200  # clients of its own are not concerned
    mesh.set_policy()
    assert mesh.ask().status == 200


def test_so_many_at_once_also_across_a_reload(mesh):
    mesh = mesh(rules=[{"name": "few", "concurrent": 1}])
    gate = threading.Event()

    def held(message):
        assert gate.wait(PATIENCE_S)
        return response()

    mesh.near.answer = held
    first = threading.Thread(target=mesh.ask)
    first.start()
    mesh.near.wait_requests(1)
    for _ in range(2):
        answer = mesh.ask()
        assert answer.status == 429 and answer.problem == "policy-quota", answer
        assert answer.json["detail"] == "the rule `few` of Site1 allows 1 request at once"
        assert answer.one(b"Retry-After") == b"1"
        mesh.set_policy(rules=[{"name": "few", "concurrent": 1, "operations": ["read"]}])  # the second time round
    gate.set()
    first.join(PATIENCE_S)
    mesh.near.usual()
    wait_until(lambda: mesh.ask().status == 200)
    assert mesh.site1.counter("cheops_policy_limited_total") >= 2


def test_so_many_per_second(mesh):
    mesh = mesh(rules=[{"name": "slow", "rate": 5}])
    started = time.monotonic()
    with mesh.site2.client("compute") as wire:
        wire.send(request(Scope="Site1") * 40)
        statuses = [wire.response().status for _ in range(40)]
    passed = statuses.count(200)
    assert set(statuses) == {200, 429}
    assert 5 <= passed <= 5 + 5 * (time.monotonic() - started) + 1
    wait_until(lambda: mesh.ask().status == 200)  # after a while there is room again
