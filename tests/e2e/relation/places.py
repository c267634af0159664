"""Sites with an image and a compute service, whose agents can be held, killed and started again."""
import http.client
import threading

import mesh as mesh_of_ours
from demo_process import ask, wait_for
from ports import free_port


class Place:
    def __init__(self, mesh, name, application="sample"):
        self.mesh, self.name = mesh, name
        front = f"127.0.0.1:{free_port()}"
        self.own = {"image": mesh.service("image", name),
                    "compute": mesh.service("compute", name, IMAGE_URL=f"http://{front}")}
        config = mesh.config(name, {service: made.url for service, made in self.own.items()}, application=application)
        config["services"]["image"]["front"] = front
        self.agent = mesh.keep(mesh_of_ours.Agent(mesh.folder, config))

    def url(self, service):
        return self.agent.url(service)

    def api(self, path, **asked):
        return ask(f"http://{self.agent.config['api']}/cheops/v1{path}", **asked)

    def restart(self):
        self.agent.kill()
        self.agent = self.mesh.again(self.agent)

    def named(self, kind, name):
        """Behind the agent's back."""
        service = "image" if kind == "images" else "compute"
        return [each for each in ask(self.own[service].url + f"/{kind}").json[kind] if each["name"] == name]

    def replicants(self, kind):
        return self.api(f"/replicants?type={kind}").json["replicants"]

    def image(self, name, content, scope=None):
        made = ask(self.url("image") + "/images", "POST", {"Scope": scope} if scope else {}, json_body={"name": name})
        assert made.status == 201, made
        assert ask(self.url("image") + f"/images/{made.json['id']}/file", "PUT", body=content).status == 200
        return made.json["id"]

    def create(self, scope, path="/servers", headers=None, **members):
        return ask(self.url("compute") + path, "POST", {"Scope": scope, **(headers or {})}, json_body=members)


def places(mesh, count=2, application="sample"):
    made = [Place(mesh, f"Site{n + 1}", application) for n in range(count)]
    mesh.join(*(each.agent for each in made))
    return made


class Trying:
    """A request whose agent may be killed meanwhile."""

    def __init__(self, run):
        self.answer = None
        self.thread = threading.Thread(target=self._run, args=(run,))
        self.thread.start()

    def _run(self, run):
        try:
            self.answer = run()
        except (OSError, http.client.HTTPException) as error:
            self.answer = error

    def end(self):
        self.thread.join()
        return self.answer


def wait_alike(sites, kind, name):
    """Each of them has one of that name."""
    for site in sites:
        wait_for(lambda site=site: len(site.named(kind, name)) == 1, f"{kind} {name} at {site.name}: {site.named(kind, name)}")
