"""The policy of a site holds for what other members of a replicated resource deliver to it."""
import json

from demo_process import ask, wait_for
from test_objects import ALL, PODS, Cluster

READERS = {"rules": [{"name": "readers", "sites": ["Site1"], "operations": "read"}]}


def set_policy(agent, **policy):
    agent.config["policy"] = policy
    agent.path.write_text(json.dumps(agent.config), encoding="utf-8")
    answer = ask(f"http://{agent.config['api']}/cheops/v1/reload", "POST")
    assert answer.status == 200, answer


def operation_at(cluster, site, operation):
    shown = ask(f"http://{cluster.agents[site].config['api']}/cheops/v1/operations/{operation}").json
    return next(member for member in shown["members"] if member["site"] == "Site2")


def test_what_is_not_allowed_is_rejected_by_a_rule(mesh):
    cluster = Cluster(mesh, Site2={"policy": READERS})
    cluster.namespace("red")
    made = cluster.make("red", "one", data={"n": "1"})
    assert "Site2=rejected" in made.header("Cheops-Replicas"), made
    operation = made.header("Cheops-Operation")
    member = operation_at(cluster, "Site1", operation)
    assert member["state"] == "rejected" and member["status"] == 403, member
    assert member["answer"] == "the rule `readers` of Site2 lets Site1 read every service; this operation would write kubernetes"
    assert cluster.servers["Site2"].names(PODS.format("red")) == []
    # Users of that site are not concerned.
    own = cluster.ask("Site2", "POST", PODS.format("red"), {"metadata": {"name": "own"}}, ALL, {"Prefer": "wait=30"})
    assert own.status == 201 and "Site1=applied" in own.header("Cheops-Replicas"), own
    # Not as long as the policy is what it is.
    url = f"http://{cluster.agents['Site2'].config['api']}/cheops/v1/operations/{operation}/retry"
    assert ask(url, "POST").status in (200, 202)
    wait_for(lambda: operation_at(cluster, "Site2", operation)["state"] == "rejected", "it to be rejected again")
    set_policy(cluster.agents["Site2"], others="allow")
    assert ask(url, "POST").status in (200, 202)
    cluster.wait_data("red", "one", {"n": "1"})


def test_nobody_that_is_not_named(mesh):
    cluster = Cluster(mesh, Site2={"policy": {"others": "refuse"}})
    cluster.namespace("red")
    made = cluster.make("red", "one")
    member = operation_at(cluster, "Site1", made.header("Cheops-Operation"))
    assert member["answer"] == "no rule of Site2 names Site1, and its policy refuses all others", member
    # What is `weak` is tried once, and that is all.
    made = cluster.ask("Site1", "POST", PODS.format("red"), {"metadata": {"name": "weak"}}, f"weak({ALL})")
    assert made.status == 201
    again = cluster.make("red", "two")
    assert "Site2=rejected" in again.header("Cheops-Replicas") and not cluster.servers["Site2"].asked("POST", PODS.format("red"))


def test_too_much_is_late_and_never_lost(mesh):
    """A rate, or a number at once, delays what was acknowledged elsewhere."""
    cluster = Cluster(mesh, Site2={"policy": {"rules": [{"name": "slow", "rate": 4, "concurrent": 2}]}})
    cluster.namespace("red")
    names = sorted(f"c{number:02}" for number in range(16))
    for name in names:
        answer = cluster.ask("Site1", "POST", PODS.format("red"), {"metadata": {"name": name}}, ALL)
        assert answer.status == 201
    wait_for(lambda: cluster.servers["Site2"].names(PODS.format("red")) == names, "all of them at Site2")
    wait_for(lambda: not ask(f"http://{cluster.agents['Site2'].config['api']}/cheops/v1/operations").json["operations"],
             "nothing that is left to do")
