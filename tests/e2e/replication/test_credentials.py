"""Operations that run later, at another site, when the user's token has long expired; and where that token is not to be seen."""
import os
import resource
import signal
import subprocess

import pytest
import yaml

from demo_process import CHEOPS, ROOT, ask, wait_for
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

    sites = ("Site1", "Site2")

    def __init__(self, mesh, mode, *arguments, **process):
        self.mesh = mesh
        self.key = mesh.folder / "key"
        self.key.write_bytes(os.urandom(32))
        description = yaml.safe_load((ROOT / "apps" / "sample.yaml").read_text(encoding="utf-8"))
        description["credentials"] = MODES[mode]
        (mesh.folder / "app.yaml").write_text(yaml.safe_dump(description), encoding="utf-8")
        self.services = {site: self.service(site) for site in self.sites}
        token = mesh.folder / "agent.token"
        token.write_text("Bearer " + self.token("agent", 3600) + "\n", encoding="ascii")
        token.chmod(0o600)
        self.agents = {}
        for site, service in self.services.items():
            config = mesh.config(site, {"network": service.url}, application="./app.yaml", log="debug")
            config["services"]["network"]["credential"] = {"header": "Authorization", "file": "agent.token"}
            config["services"]["network"]["carry"] = []
            self.agents[site] = mesh.keep(Agent(mesh.folder, config, *arguments, **process))
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

    def files_with(self, secrets):
        """All files but those that are meant to have them: the agents' own token, and what the services write down."""
        own = {self.mesh.folder / "agent.token"}
        return [path for path in self.mesh.folder.rglob("*")
                if path.is_file() and path not in own and not path.name.endswith(".requests")
                and any(secret in path.read_bytes() for secret in secrets)]

    def secrets(self, token):
        """Whole, its signature alone, and the agents' own."""
        return [token.encode(), token.split(".")[2].encode(), (self.mesh.folder / "agent.token").read_bytes().split()[1]]


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
    token = guarded.token("ann", 5)  # good for long enough to be used once
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
    """Not in the logs, of all levels, not on disk, not in answers; while the operation is pending, and when it is over."""
    token = guarded.token("ann")
    guarded.agents["Site2"].kill()
    made = guarded.make(token, "secret")
    secrets = guarded.secrets(token)
    operation, meta = made.header("Cheops-Operation"), made.json["id"]

    def answers():
        api = "http://" + guarded.agents["Site1"].config["api"] + "/cheops/v1"
        for path in ("/metrics", "/sites", "/services", "/replicants", f"/replicants/{meta}", "/operations",
                     f"/operations/{operation}"):
            answer = ask(api + path)
            assert answer.status == 200, (path, answer)
            yield answer
        yield ask(guarded.agents["Site1"].url("network") + f"/pools/{meta}", "GET",
                  {"Authorization": f"Bearer {token}", "Cheops-Explain": "plan"})
        yield made

    def is_seen():
        return guarded.files_with(secrets) or [
            answer for answer in answers() if any(secret.decode() in repr(answer.headers) + answer.bytes.decode()
                                                  for secret in secrets)]

    assert not is_seen()
    guarded.agents["Site2"] = guarded.mesh.again(guarded.agents["Site2"])
    wait_for(lambda: guarded.behind("Site2", "secret"), "the pool at Site2")
    assert not guarded.files_with(secrets)


# ---- Cores --------------------------------------------------------------------------------------------------------------


def allow_cores():
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def leaves_core(process):
    """Crashes it, and says what its parent is told of it."""
    process.send_signal(signal.SIGABRT)
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    process.wait()
    assert ended.si_status == signal.SIGABRT
    return ended.si_code == os.CLD_DUMPED


def test_a_crash_leaves_no_core(mesh):
    guarded = Guarded(mesh, "forward", cwd=mesh.folder, preexec_fn=allow_cores)
    token = guarded.token("ann")
    guarded.agents["Site2"].kill()
    guarded.make(token, "crash")  # is pending: the agent has the token
    guarded.agents["Site1"].crashed = True
    assert not leaves_core(guarded.agents["Site1"].process)
    assert not guarded.files_with(guarded.secrets(token))


def test_a_crash_leaves_a_core_if_it_is_told_to(mesh):
    """Where the system makes cores at all; an address sanitizer lets it make none."""
    with subprocess.Popen(["sleep", "1000"], cwd=mesh.folder, preexec_fn=allow_cores) as other:
        expected = leaves_core(other) and b"__asan_init" not in CHEOPS.read_bytes()
    config = mesh.config("Site1", {"network": mesh.recorder().url})
    agent = mesh.keep(Agent(mesh.folder, config, "--allow-core", cwd=mesh.folder, preexec_fn=allow_cores))
    assert "a crash would leave a core" in agent.log.read_text(encoding="utf-8")
    agent.crashed = True
    assert leaves_core(agent.process) == expected
    for core in mesh.folder.glob("core*"):
        core.unlink()


def test_a_request_that_does_not_say_who_asks(mesh):
    guarded = Guarded(mesh, "impersonate")
    answer = ask(guarded.agents["Site1"].url("network") + "/pools", "POST", {"Scope": "Site1 & Site2"}, json_body={"name": "x"})
    assert answer.status == 400 and answer.problem["type"] == "no-user"


def test_retried_with_another_credential(mesh, cheops):
    """What was rejected for its credential alone: cheops ops retry --credential."""
    guarded = Guarded(mesh, "forward")
    guarded.agents["Site2"].kill()
    token = guarded.token("ann", 5)  # good for long enough to be used once
    operation = guarded.make(token, "late").header("Cheops-Operation")
    wait_for(lambda: guarded.services["Site1"].ask("GET", "/pools", headers={"Authorization": f"Bearer {token}"}).status == 401,
             "the end of the token")
    guarded.agents["Site2"] = guarded.mesh.again(guarded.agents["Site2"])
    api = guarded.agents["Site2"].config["api"]
    wait_for(lambda: "rejected-credential" in cheops("ops", "get", operation, "--api", api).out, "the refusal at Site2")
    file = mesh.folder / "fresh"
    file.write_text(f"Authorization: Bearer {guarded.token('ann')}\n", encoding="ascii")
    file.chmod(0o644)
    open_to_all = cheops("ops", "retry", operation, "--api", api, "--credential", file)
    assert open_to_all.status == 2 and "everybody may read" in open_to_all.err, open_to_all
    file.chmod(0o600)
    result = cheops("ops", "retry", operation, "--api", api, "--credential", file)
    assert result.status == 0, result
    wait_for(lambda: guarded.behind("Site2", "late"), "the pool at Site2")
    assert cheops("ops", "get", operation, "--wait", "all", "--api", api).status == 0
    file.write_text("no header\n", encoding="ascii")
    wrong = cheops("ops", "retry", operation, "--api", api, "--credential", file)
    assert wrong.status == 2 and "is no header" in wrong.err
    assert cheops("ops", "dismiss", operation, "--api", api, "--credential", file).status == 2
