"""Operations that run later, at another site, when the user's token has long expired; and where that token is not to be seen."""
import os

import pytest
import yaml

from demo_process import ROOT, ask, wait_for
from mesh import Agent
import sample_services

MODES = {
    "forward": {"headers": ["Authorization"], "run": "forward", "refused": [401]},
    "impersonate": {"headers": ["Authorization"], "run": "impersonate", "refused": [401], "user": {"claim": "sub"},
                    "impersonate": {"X-On-Behalf-Of": "{user}"}},
    "agent": {"headers": ["Authorization"], "run": "agent", "refused": [401]},
}


class Guarded:
    """Two sites whose network services want a token. The agents have one of their own."""

    def __init__(self, mesh, mode):
        self.mesh = mesh
        self.key = mesh.folder / "key"
        self.key.write_bytes(os.urandom(32))
        description = yaml.safe_load((ROOT / "apps" / "sample.yaml").read_text(encoding="utf-8"))
        description["credentials"] = MODES[mode]
        (mesh.folder / "app.yaml").write_text(yaml.safe_dump(description), encoding="utf-8")
        self.services = {site: self.service(site) for site in ("Site1", "Site2")}
        token = mesh.folder / "agent.token"
        token.write_text("Bearer " + self.token("agent", 3600) + "\n", encoding="ascii")
        token.chmod(0o600)
        self.agents = {}
        for site, service in self.services.items():
            config = mesh.config(site, {"network": service.url}, application="./app.yaml")
            config["services"]["network"]["credential"] = {"header": "Authorization", "file": "agent.token"}
            config["services"]["network"]["carry"] = []
            self.agents[site] = mesh.keep(Agent(mesh.folder, config))
        mesh.join(*self.agents.values())

    def service(self, site, port=0):
        folder = self.mesh.folder / f"{site}-network"
        return self.mesh.keep(sample_services.Service("network", folder, "--token-key", self.key, "--access-log",
                                                      folder.with_suffix(".requests"), SITE_NAME=site))

    def token(self, user="ann", seconds=3600):
        return self.services["Site1"].post("/tokens", {"user": user, "seconds": seconds}).json["token"]

    def make(self, token, name, at="Site1"):
        answer = ask(self.agents[at].url("network") + "/pools", "POST",
                     {"Scope": "Site1 & Site2", "Authorization": f"Bearer {token}"}, json_body={"name": name})
        assert answer.status == 201, answer
        return answer

    def behind(self, site, name):
        """What the service itself has of that name."""
        answer = self.services[site].ask("GET", f"/pools?name={name}", headers={"Authorization": f"Bearer {self.token()}"})
        assert answer.status == 200, answer
        return next(iter(answer.json["pools"]), None)


@pytest.fixture(params=list(MODES))
def guarded(request, mesh):
    made = Guarded(mesh, request.param)
    made.mode = request.param
    return made


def test_while_the_token_is_good(guarded):
    guarded.make(guarded.token("ann"), "blue")
    pool = wait_for(lambda: guarded.behind("Site2", "blue"), "the pool at Site2")
    assert pool["owner"] == ("agent" if guarded.mode == "agent" else "ann")
    assert guarded.behind("Site1", "blue")["owner"] == "ann"


def test_after_the_token_has_expired(guarded):
    """The other agent is away until the token is over."""
    guarded.agents["Site2"].kill()
    token = guarded.token("ann", 2)
    answer = guarded.make(token, "late")
    wait_for(lambda: guarded.services["Site1"].ask("GET", "/pools", headers={"Authorization": f"Bearer {token}"}).status == 401,
             "the end of the token")
    guarded.agents["Site2"] = guarded.mesh.again(guarded.agents["Site2"])
    if guarded.mode == "forward":
        # It is refused for its credential alone, and is shown as such; not skipped, not lost.
        log = guarded.mesh.folder / "Site2-network.requests"
        wait_for(lambda: any('"POST"' in line and '"status":401' in line for line in log.read_text().splitlines()),
                 "the refusal at Site2")
        assert guarded.behind("Site2", "late") is None
        assert answer.header("Cheops-Operation")
    else:
        pool = wait_for(lambda: guarded.behind("Site2", "late"), "the pool at Site2")
        assert pool["owner"] == ("agent" if guarded.mode == "agent" else "ann")


def test_a_secret_is_nowhere_to_be_seen(guarded):
    """Not in the logs, not on disk, not in answers; while the operation is pending, and when it is over."""
    token = guarded.token("ann")
    guarded.agents["Site2"].kill()
    made = guarded.make(token, "secret")
    secrets = [token.encode(), token.split(".")[2].encode(), (guarded.mesh.folder / "agent.token").read_bytes().strip()]

    def seen_in():
        own = {guarded.mesh.folder / "agent.token"}
        for path in guarded.mesh.folder.rglob("*"):
            if path.is_file() and path not in own and not path.name.endswith(".requests"):
                content = path.read_bytes()
                if any(secret in content for secret in secrets):
                    yield path

    assert not list(seen_in())
    for path in ("/cheops/v1/metrics", "/cheops/v1/sites"):
        assert not any(secret in ask("http://" + guarded.agents["Site1"].config["api"] + path).bytes for secret in secrets)
    assert not any(secret.decode() in str(made.headers) + made.bytes.decode() for secret in secrets)
    guarded.agents["Site2"] = guarded.mesh.again(guarded.agents["Site2"])
    wait_for(lambda: guarded.behind("Site2", "secret"), "the pool at Site2")
    assert not list(seen_in())


def test_a_request_that_does_not_say_who_asks(mesh):
    guarded = Guarded(mesh, "impersonate")
    answer = ask(guarded.agents["Site1"].url("network") + "/pools", "POST", {"Scope": "Site1 & Site2"}, json_body={"name": "x"})
    assert answer.status == 400 and answer.problem["type"] == "no-user"
