"""Sites with an agent and a network service each, whose pools are divisible. An agent can be ended and started again alone."""
import json
import pathlib

import mesh_maker
from demo_process import ask, free_base, wait_for
from files_lab import SAMPLE, Site, heard, stop_all


class PoolSite(Site):
    def __init__(self, folder, name, base, application="sample", tags=None):
        self.folder, self.name = pathlib.Path(folder) / name, name
        self.folder.mkdir(parents=True)
        self.front, self.own = f"http://127.0.0.1:{base + 2}", f"http://127.0.0.1:{base + 11}"
        self.config = {"site": name, "api": f"127.0.0.1:{base}", "peer": f"127.0.0.1:{base + 1}", "threads": 1,
                       "state": str(self.folder / "state"), "application": application, "timeouts": {"stop": "3s"},
                       "services": {"network": {"front": f"127.0.0.1:{base + 2}", "instances": f"127.0.0.1:{base + 11}"}}}
        if tags:
            self.config["tags"] = tags
        self.path = self.folder / "agent.yaml"
        self.path.write_text(json.dumps(self.config), encoding="utf-8")
        self.agent = None
        self.service = self._run("service", SAMPLE, "network", "--listen", f"127.0.0.1:{base + 11}", "--data",
                                 self.folder / "network")

    def ask(self, method, path, body=None, **headers):
        """Headers are named as arguments are: Cheops_Divide="evenly"."""
        return ask(self.front + path, method, {name.replace("_", "-"): value for name, value in headers.items()},
                   json_body=body)

    def read(self, path, **headers):
        """With what all sites say of it."""
        return heard(lambda: self.ask("GET", path, **headers))

    def pools(self):
        """As the service has them, by name."""
        return {each["name"]: each for each in ask(f"{self.own}/pools").json["pools"]}


class PoolLab:
    def __init__(self, folder, count=3, application="sample", tags=None):
        base = free_base(count)
        tags = tags or [None] * count
        self.sites = [PoolSite(folder, f"Site{i + 1}", base + 100 * i, application, tags[i]) for i in range(count)]
        try:
            mesh_maker.init(self.sites[0].path)
            self.sites[0].start()
            for site in self.sites[1:]:
                mesh_maker.join(site, self.sites[0])
                site.start()
            mesh_maker.wait_reachable(self.sites)
            mesh_maker.wait_kept(self.sites)
        except BaseException:
            self.stop()
            raise

    def __getitem__(self, number):
        return self.sites[number - 1]

    def stop(self):
        stop_all(self.sites)

    def make(self, name, at=1, scope="Site1 % Site2 % Site3", headers=None, **fields):
        """A pool; its path."""
        answer = self[at].ask("POST", "/pools", {"name": name, **fields}, Scope=scope, Prefer="wait=60", **(headers or {}))
        assert answer.status == 201, answer
        assert "pending" not in answer.header("Cheops-Replicas"), answer
        return f"/pools/{answer.json['id']}"

    def parts(self, name, field="size"):
        """What the services have of it."""
        return [site.pools().get(name, {}).get(field) for site in self.sites]

    def settled(self, path, at=(1, 2, 3)):
        """All of these have all that any of them knows of it."""
        meta_id = path.split("/")[-1]

        def are_settled():
            for number in at:
                shown = ask(f"http://{self[number].config['api']}/cheops/v1/replicants/{meta_id}")
                if shown.status != 200 or shown.json["state"] != "settled":
                    return False
            return True
        wait_for(are_settled, f"{path} to be settled at all sites")
