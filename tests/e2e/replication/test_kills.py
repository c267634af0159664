"""kill -9 of agents and of services while users write at each site, a hundred times. What was acknowledged is there in the
end, at every site; what was not is there everywhere or nowhere."""
import http.client
import random
import threading

from scenes import Scene
from wan_lab import Lab, wait_for

KILLS = 100
SHARED = "shared"


class Writer(threading.Thread):
    """A user at a site: makes pools, changes and deletes them, and sets a number in one that all change."""

    def __init__(self, scene, site, shared):
        super().__init__(daemon=True)
        self.scene, self.site, self.shared = scene, site, shared
        self.random = random.Random(site)
        self.paths = {}  # name: path, of those that were acknowledged, and not asked to be deleted
        self.tried, self.kept = {}, {}  # (name, member): the last number that was asked for, that was acknowledged
        self.deleted, self.perhaps = set(), set()  # acknowledged; asked for, to be made or deleted, and not acknowledged
        self.asked = 0
        self.strange = []
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            self.asked += 1
            name = self.random.choice(sorted(self.paths)) if self.paths else None
            what = self.random.randrange(10)
            if what < 3 or name is None:
                self.make(f"{self.site}-{self.asked}")
            elif what == 3:
                self.delete(name)
            elif what < 7:
                self.set(name, self.paths[name], "size")
            else:
                self.set(SHARED, self.shared, self.site)

    def ask(self, method, path, body=None, scope=None):
        """The answer, if it is a success."""
        try:
            answer = self.scene.ask(self.site, method, path, body, scope)
        except (OSError, http.client.HTTPException):  # the agent is dead
            self.over.wait(0.01)
            return None
        if answer.status >= 500:  # the service is
            self.over.wait(0.01)
        elif answer.status >= 300:
            self.strange.append((method, path, body, answer))
        return answer if answer.status < 300 else None

    def make(self, name):
        self.perhaps.add(name)
        answer = self.ask("POST", "/pools", {"name": name}, " & ".join(self.scene.sites))
        if answer:
            self.perhaps.discard(name)
            self.paths[name] = f"/pools/{answer.json['id']}"

    def delete(self, name):
        path = self.paths.pop(name)
        if self.ask("DELETE", path):
            self.deleted.add(name)
        else:
            self.perhaps.add(name)

    def set(self, name, path, member):
        self.tried[name, member] = self.asked
        if self.ask("PATCH", path, {member: self.asked}):
            self.kept[name, member] = self.asked

    # ---- in the end

    def lost(self, pools):
        """What was acknowledged, and is not so there."""
        for name in self.paths:
            if name not in pools:
                yield f"{name} was made"
        for name in self.deleted:
            if name in pools:
                yield f"{name} was deleted"
        for (name, member), number in self.kept.items():
            if name in pools and not number <= pools[name].get(member, -1) <= self.tried[name, member]:
                yield f"{member} of {name} was {number}, and later perhaps {self.tried[name, member]}: {pools[name]}"


def test_a_hundred_kills():
    with Lab(3) as lab:
        lab.set("*", "*", delay="2ms")
        scene = Scene(lab)
        shared = scene.make_everywhere(SHARED)
        for site in lab.sites:
            lab.wait_stored(site, *(other for other in lab.sites if other != site))
        writers = [Writer(scene, site, shared) for site in lab.sites]
        for writer in writers:
            writer.start()
        chance = random.Random(1)
        for number in range(KILLS):
            site, part = chance.choice(lab.sites), ("agent", "network")[number % 2]
            least = writers[lab.sites.index(site)].asked + 3
            wait_for(lambda site=site, least=least: writers[lab.sites.index(site)].asked >= least, f"users at {site}")
            lab.kill(site, part)
            if part == "agent":
                lab.start_agent(site)
            else:
                scene.start_service(site)
        for writer in writers:
            writer.over.set()
        for writer in writers:
            writer.join()
            assert not writer.strange, writer.strange[:3]
        views = {}

        def are_equal():
            views.update({site: scene.pools(site) for site in lab.sites})
            return all(view == views[lab.sites[0]] for view in views.values())

        def differences():
            names = sorted({name for view in views.values() for name in view})
            found = {name: [view.get(name) for view in views.values()] for name in names}
            operations = {site: lab.ask(site, "api", "/cheops/v1/operations").bytes for site in lab.sites}
            return [(name, each) for name, each in found.items() if each != [each[0]] * 3][:5], operations

        wait_for(are_equal, lambda: f"sites that are equal; these differ: {differences()}")
        for site in lab.sites:  # and nothing is kept of what everybody has
            wait_for(lambda site=site: lab.metric(site, "cheops_replica_pending_operations") == 0,
                     lambda site=site: f"{site}, which keeps {lab.ask(site, 'api', '/cheops/v1/operations')}")
        pools = views[lab.sites[0]]
        known = {SHARED}.union(*(writer.paths for writer in writers), *(writer.perhaps for writer in writers))
        assert set(pools) <= known
        assert not [each for writer in writers for each in writer.lost(pools)]
        assert sum(len(writer.kept) + len(writer.paths) for writer in writers) > KILLS / 4  # they did get somewhere
