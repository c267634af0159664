"""A REST server that nobody here wrote, unchanged, at three sites: json-server under the description `rest`.

Its ids are numbers, in JSON without quotes, or short strings, whichever those that are there already are. Each site has posts of
its own, which are nobody else's business, and which make the ids differ from site to site.
"""
import json
import pathlib
import subprocess

import pytest

import mesh as mesh_of_ours
from demo_process import ROOT, ask, wait_for
from mesh import Agent
from ports import free_port
from mesh_maker import wait_present

SITES = ("Site1", "Site2", "Site3")
ALL = " & ".join(SITES)
HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = "node_modules/json-server/lib/cli/bin.js"
KINDS = ("numbers", "strings")
OWN_POSTS = {"Site1": 2, "Site2": 5, "Site3": 1}


@pytest.fixture(scope="module")
def installed():
    run = subprocess.run([ROOT / "scripts" / "json-server"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    return pathlib.Path(run.stdout.strip())


class JsonServer:
    def __init__(self, program, folder, posts):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = folder / "db.json"
        folder.mkdir()
        self.database.write_text(json.dumps({"posts": posts, "comments": []}), encoding="utf-8")
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["node", "--require", HERE / "json_server" / "loopback.cjs", program, "--port", str(self.port), self.database],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait_for(self.answers, "json-server")

    def answers(self):
        assert self.process.poll() is None, self.log.name
        try:
            return ask(self.url + "/posts").status == 200
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Blog:
    def __init__(self, mesh, program, kind):
        self.mesh = mesh
        self.kind = kind
        self.own = {site: [{"id": number if kind == "numbers" else f"{site}-{number}", "title": f"{number} of {site}"}
                           for number in range(1, count + 1)] for site, count in OWN_POSTS.items()}
        self.servers = {site: mesh.keep(JsonServer(program, mesh.folder / site, self.own[site])) for site in SITES}
        self.agents = {site: mesh.agent(site, {"blog": server.url}, application="rest")
                       for site, server in self.servers.items()}
        mesh.join(*self.agents.values())
        for agent in self.agents.values():  # each knows all others when it starts again
            table = pathlib.Path(agent.config["state"]) / "sites"
            wait_for(lambda agent=agent, table=table: table.exists() and all(
                site.encode() in table.read_bytes() for site in SITES if site != agent.config["site"]),
                     "the table of sites on the disk")

    # ---- as users do

    def ask(self, site, method, path, body=None, scope=None):
        return ask(self.agents[site].url("blog") + path, method, {"Scope": scope} if scope else None, json_body=body)

    def change(self, site, method, path, body=None, scope=None):
        answer = self.ask(site, method, path, body, scope)
        assert answer.status in (200, 201, 204), answer
        return answer

    def make(self, site="Site1", path="/posts", scope=ALL, **members):
        answer = self.change(site, "POST", path, members, scope)
        assert answer.status == 201 and len(answer.json["id"]) == 36, answer
        return f"{path}/{answer.json['id']}"

    def get(self, site, path):
        answer = self.ask(site, "GET", path)
        return answer.json if answer.status == 200 else None

    # ---- behind the agents' backs

    def behind(self, site, things="posts"):
        """What is replicated, without ids: texts that can be compared."""
        found = json.loads(ask(f"{self.servers[site].url}/{things}").bytes)
        return sorted(json.dumps({key: value for key, value in each.items() if key != "id"}, sort_keys=True)
                      for each in found if each not in self.own[site])

    def wait_equal(self, path, wanted, sites=SITES):
        """Until each of the sites shows it so, by its meta-id; None: not at all."""
        for site in sites:
            expected = None if wanted is None else {**wanted, "id": path.rpartition("/")[2]}
            wait_for(lambda site=site: self.get(site, path) == expected, f"{path} at {site} to be {expected}")

    def wait_databases_equal(self):
        wait_for(lambda: self.behind("Site1") == self.behind("Site2") == self.behind("Site3"), "databases that are equal")

    # ---- those who are away

    def kill(self, *sites):
        for site in sites:
            self.agents[site].kill()

    def start(self, *sites):
        for site in sites:
            self.agents[site] = self.mesh.again(self.agents[site])


@pytest.fixture(scope="module", params=KINDS)
def blog(request, installed, tmp_path_factory):
    mesh = mesh_of_ours.Mesh(tmp_path_factory.mktemp(request.param))
    try:
        yield Blog(mesh, installed / PROGRAM, request.param)
    finally:
        mesh.stop()


def test_a_post_everywhere(blog):
    path = blog.make(title="hello", views=1.50)
    blog.wait_equal(path, {"title": "hello", "views": 1.5})
    local = {site: next(each["id"] for each in ask(server.url + "/posts").json if each["title"] == "hello")
             for site, server in blog.servers.items()}
    assert {type(each) for each in local.values()} == {int if blog.kind == "numbers" else str}
    for site in SITES:
        listed = blog.get(site, "/posts")
        assert [each["id"] for each in listed if each["title"] == "hello"] == [path.rpartition("/")[2]]
        assert [each for each in listed if each["title"] != "hello"] == blog.own[site]  # as they are
        assert blog.get(site, f"/posts/{local[site]}")["id"] == path.rpartition("/")[2]  # the local id is as good
    blog.change("Site2", "PATCH", f"/posts/{local['Site2']}", {"views": 2})
    blog.wait_equal(path, {"title": "hello", "views": 2})
    blog.change("Site3", "PUT", path, {"title": "changed"})
    blog.wait_equal(path, {"title": "changed"})
    blog.change("Site1", "PUT", path, {"id": path.rpartition("/")[2], "title": "with its id"})
    blog.wait_equal(path, {"title": "with its id"})
    for site in SITES:
        assert blog.behind(site) == ['{"title": "with its id"}']
    blog.change("Site2", "DELETE", path)
    blog.wait_equal(path, None)
    for site in SITES:
        assert ask(blog.servers[site].url + "/posts").json == blog.own[site]


def test_its_own_posts_stay_its_own(blog):
    for site in SITES:
        for post in blog.own[site]:
            assert blog.get(site, f"/posts/{post['id']}") == post
    made = blog.change("Site1", "POST", "/posts", {"title": "here only"}).json
    assert len(str(made["id"])) < 36
    blog.own["Site1"].append(made)
    patched = blog.change("Site1", "PATCH", f"/posts/{made['id']}", {"title": "still here only"}).json
    blog.own["Site1"][-1] = patched
    assert patched == {"title": "still here only", "id": made["id"]}
    assert not any("here only" in each["title"] for site in SITES[1:] for each in blog.get(site, "/posts"))


def test_changed_on_both_sides(blog):
    """Site3 is alone for a while, and then the others are: neither hears what the other does before all are back."""
    paths = {name: blog.make(title=name) for name in ("patched", "set", "set twice", "deleted", "left alone")}
    for name, path in paths.items():
        blog.wait_equal(path, {"title": name})
    blog.kill("Site1", "Site2")
    blog.change("Site3", "PATCH", paths["patched"], {"third": 3})
    blog.change("Site3", "PATCH", paths["set"], {"third": 3})
    blog.change("Site3", "PUT", paths["set twice"], {"title": "set twice", "third": 3})
    blog.change("Site3", "PATCH", paths["deleted"], {"third": 3})
    new = {"Site3": blog.make("Site3", title="new", of=3)}
    blog.kill("Site3")
    blog.start("Site1", "Site2")
    blog.change("Site1", "PATCH", paths["patched"], {"first": 1})
    blog.change("Site2", "PUT", paths["set"], {"title": "set", "second": 2})
    blog.change("Site1", "PUT", paths["set twice"], {"title": "set twice", "first": 1})
    blog.change("Site2", "DELETE", paths["deleted"])
    new["Site1"] = blog.make("Site1", title="new", of=1)
    blog.wait_equal(new["Site1"], {"title": "new", "of": 1}, SITES[:2])
    blog.start("Site3")
    blog.wait_equal(paths["patched"], {"title": "patched", "first": 1, "third": 3})
    blog.wait_equal(paths["set"], {"title": "set", "second": 2, "third": 3})
    blog.wait_equal(paths["set twice"], {"title": "set twice", "first": 1})
    blog.wait_equal(paths["deleted"], None)
    blog.wait_equal(paths["left alone"], {"title": "left alone"})
    blog.wait_equal(new["Site1"], {"title": "new", "of": 1})
    blog.wait_equal(new["Site3"], {"title": "new", "of": 3})
    blog.wait_databases_equal()
    assert len(blog.behind("Site1")) == 6
    wait_present(list(blog.agents.values()))
