"""Sites with an agent, a compute and an image service each: projects that span them, and what is in these."""
import json
import pathlib

import demo_process
import files_lab
from files_lab import ask, heard, mesh_maker, wait_for

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"


class Site(files_lab.Site):
    """`front` and `own` are of the compute service."""

    def __init__(self, folder, name, base, application="sample"):  # pylint: disable=super-init-not-called
        self.folder, self.name = folder / name, name
        self.folder.mkdir(parents=True)
        self.front, self.own = f"http://127.0.0.1:{base + 2}", f"http://127.0.0.1:{base + 11}"
        self.image = f"http://127.0.0.1:{base + 3}"
        ports = {"compute": (base + 2, base + 11), "image": (base + 3, base + 12)}
        self.config = {"site": name, "api": f"127.0.0.1:{base}", "peer": f"127.0.0.1:{base + 1}", "threads": 1,
                       "state": str(self.folder / "state"), "application": application, "timeouts": {"stop": "3s"},
                       "services": {service: {"front": f"127.0.0.1:{front}", "instances": f"127.0.0.1:{own}"}
                                    for service, (front, own) in ports.items()}}
        self.path = self.folder / "agent.yaml"
        self.path.write_text(json.dumps(self.config), encoding="utf-8")
        self.agent = None
        self.services = {service: self._serve(service, own) for service, (_, own) in ports.items()}
        self.service = self.services["compute"]

    def _serve(self, service, port):
        with open(self.folder / f"{service}.log", "ab") as log:
            return files_lab.subprocess.Popen(
                [str(files_lab.SAMPLE), service, "--listen", f"127.0.0.1:{port}", "--data", str(self.folder / service)],
                env=demo_process.environment({"IMAGE_URL": self.image, "SITE_NAME": self.name}),
                stdin=files_lab.subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        try:
            super().stop()
        finally:
            self.services["image"].terminate()
            self.services["image"].wait(demo_process.BOUND_S)

    def restart(self):
        self.kill()
        self.start()

    @property
    def api(self):
        return f"http://{self.config['api']}/cheops/v1"


class Lab(files_lab.Lab):
    def __init__(self, folder, count=3, application="sample"):  # pylint: disable=super-init-not-called
        base = demo_process.free_base(count)
        self.sites = [Site(folder, f"Site{i + 1}", base + 100 * i, application) for i in range(count)]
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

    def project(self, name, scope="Site1 % Site2", at=1):
        """A project over sites, known to all of them."""
        answer = ask(f"{self[at].front}/projects", "POST", {"Scope": scope}, json_body={"name": name})
        assert answer.status == 201, answer
        project = Project(self, answer.json["id"], [int(word[4:]) for word in scope.replace("%", " ").split()])
        for site in project.sites:
            wait_for(lambda site=site: ask(f"{site.front}/projects/{project.id}").status == 200,
                     f"{site.name} to have {name}")
        return project


class Project:
    def __init__(self, lab, meta_id, numbers):
        self.lab, self.id, self.numbers = lab, meta_id, numbers

    @property
    def sites(self):
        return [self.lab[number] for number in self.numbers]

    def path(self, kind="volumes", item=None):
        return f"/projects/{self.id}/{kind}" + (f"/{item}" if item else "")

    def make(self, name, at=1, scope=None, kind="volumes", headers=None, **members):
        fields = {**({"Scope": scope} if scope else {}), **(headers or {})}
        body = {"name": name, **({"size": 1} if kind == "volumes" else {}), **members}
        return ask(self.lab[at].front + self.path(kind), "POST", fields, json_body=body)

    def ask(self, at, item=None, method="GET", kind="volumes", **more):
        return ask(self.lab[at].front + self.path(kind, item), method, **more)

    def list(self, at, kind="volumes", headers=None):
        """The list as that site gives it, which has to be whole."""
        answer = heard(lambda: ask(self.lab[at].front + self.path(kind), headers=headers))
        assert answer.status == 200, answer
        assert answer.header("Cheops-Partial") is None, answer
        return answer.json[kind]

    def names(self, at, kind="volumes"):
        return sorted(each["name"] for each in self.list(at, kind))

    def local_names(self, at, kind="volumes"):
        """What the service of a site has, asked without the agent."""
        own = self.lab[at].own
        local = {each["name"]: each["id"] for each in ask(f"{own}/projects").json["projects"]}
        mine = ask(f"{self.lab[at].front}/projects/{self.id}").json["name"]
        return sorted(each["name"] for each in ask(f"{own}/projects/{local[mine]}/{kind}").json[kind])


def known_at(site, meta_id):
    return ask(f"{site.api}/replicants/{meta_id}")


def wait_known(project, meta_id):
    for site in project.sites:
        wait_for(lambda site=site: known_at(site, meta_id).status == 200, f"{site.name} to know of {meta_id}")
