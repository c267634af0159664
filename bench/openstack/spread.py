"""Servers made over several sites, by the scopes of one client, beside as many at one site alone.

Lebre et al. (IC2E 2017, "Multi-site Scenarios") made 500 with one OpenStack over 2 to 8 clusters, 10 and 50 ms apart. With a
database in one place, or Galera, 8 clusters took 1.9 and 9.9 times as long as with the distributed one that they propose, with
which the time stays as it is. Here each site has an OpenStack of its own, and agents lead requests there.
"""
import concurrent.futures
import dataclasses
import threading
import time

from labs import Client, Failed, Lab, cpu_between, say, wait_until
from tables import print_table, spread_of
from ways import AGENT, DIRECT, Ways

IN_FLIGHT = 16      # requests of the client at a time
IDLE_S = 5


@dataclasses.dataclass
class Case:
    name: str
    what: str
    sites: int = 1
    round_trip_ms: int = 0      # 0: there is no other site, or none that is asked
    image: str = "own"          # of the site of the server (own), or Site1's (far)
    direct: bool = False

    def scope(self, site):
        return "" if self.direct else f"{{compute: {site}, image: {site if self.image == 'own' else 'Site1'}}}"


ALONE = Case("alone", "one site alone, no agent", direct=True)
DIRECT_HERE = Case("direct", "Site1 of 4, no agent", direct=True)
HERE = Case("1_site", "Site1 of 4, agent, scope here")      # at whatever distance the others are: they are not asked


def cases(quick):
    """Those in the lab of four sites."""
    made = [DIRECT_HERE] + ([] if quick else [HERE])
    for trip in (50,) if quick else (10, 50):
        made += [Case(f"{count}_sites_{trip}ms", f"{count} sites, {trip} ms", count, trip)
                 for count in ((4,) if quick else (2, 4))]
        made += [Case(f"4_sites_{trip}ms_image_of_site1", f"4 sites, {trip} ms, image of Site1", 4, trip, "far")]
    return made


class Maker:
    """A client at the first site of a lab, who makes servers there and at others."""

    def __init__(self, bench, lab):
        self.bench, self.lab = bench, lab
        self.home = lab.sites["Site1"]
        self.ways = Ways(lab, self.home, bench.stage)
        self.past = {name: Client(site, inside=True).log_in() for name, site in lab.sites.items()}
        self.images = {name: client.make_image("bench") for name, client in self.past.items()}

    def token(self):
        """Of the first site's Keystone: it is good at all of them."""
        return self.past["Site1"].token

    def make(self, case, count):
        """So many servers, until all are active: what it took."""
        targets = list(self.lab.sites)[:case.sites]
        self.ways.take(DIRECT if case.direct else AGENT)
        if case.round_trip_ms:
            self.lab.set_round_trip(case.round_trip_ms)
        everything, agents, began = self.lab.cpu(), self.agents_cpu(), time.monotonic()
        asked = self.post(case, targets, count)
        shares = {site: len(range(number, count, len(targets))) for number, site in enumerate(targets)}
        wait_until(lambda: not any(self.building(site) for site in targets), "all servers to be made")
        told = {"seconds": time.monotonic() - began, "asked": asked - began, "cpu": cpu_between(everything, self.lab.cpu()),
                "agents": self.agents_cpu() - agents}
        self.check(shares)
        return told

    def post(self, case, targets, count):
        """Returns when the last was answered. Who asks keeps its connection; all end soon when one fails, or on Ctrl-C."""
        ended = threading.Event()

        def ask(worker):
            client = Client(self.home)
            client.token = self.token()
            for number in range(worker, count, IN_FLIGHT):
                if ended.is_set():
                    break
                site = targets[number % len(targets)]
                image = self.images[site if case.image == "own" else "Site1"]
                client.ask("compute", "POST", "/v2.1/servers", {"server": {
                    "name": f"bench-{number}", "imageRef": image, "flavorRef": "1", "networks": "none"}},
                    {"Scope": case.scope(site)} if case.scope(site) else {}, expect=202)
            client.close()

        with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as pool:
            asking = [pool.submit(ask, worker) for worker in range(IN_FLIGHT)]
            try:
                for done in concurrent.futures.as_completed(asking):
                    done.result()
            finally:
                ended.set()
        return time.monotonic()

    def building(self, site):
        return self.past[site].servers("?status=BUILD")

    def check(self, shares):
        """Each site has made what it was to make."""
        for site, client in self.past.items():
            made, wanted = len(client.servers("?status=ACTIVE")), shares.get(site, 0)
            if made != wanted:
                others = [f"{each['name']} is {each['status']}: {each.get('fault', {}).get('message', 'without a reason')}"
                          for each in client.servers("/detail") if each["status"] != "ACTIVE"]
                raise Failed("; ".join([f"{made} servers are active at {site}, not {wanted}", *others]))

    def clear(self):
        with concurrent.futures.ThreadPoolExecutor(len(self.past)) as pool:
            list(pool.map(Client.delete_servers, self.past.values()))

    def agents_cpu(self):
        return sum(map(self.lab.agent_cpu, self.lab.sites))

    def idle_cores(self):
        """What the sites take of the machine while nobody asks anything."""
        before = self.lab.cpu()
        time.sleep(IDLE_S)
        return cpu_between(before, self.lab.cpu()) / IDLE_S


class Spread:
    """`bench` lends options and the stage, and takes ratios."""

    def __init__(self, bench):
        self.bench = bench
        self.results = {}       # name of the case: [what each round took]
        self.whats, self.idle = {}, {}

    def measure_one(self, lab):
        """In a lab of one site."""
        self.measure(lab, [ALONE])

    def measure_four(self):
        with Lab(4, self.bench.options.cheops) as lab:
            try:
                self.measure(lab, cases(self.bench.options.quick))
            finally:
                self.bench.stage.clear()
        self.print()
        self.add_ratios()

    def measure(self, lab, wanted):
        client = Maker(self.bench, lab)
        client.make(dataclasses.replace(wanted[0], sites=len(lab.sites), direct=False), 2 * len(lab.sites))     # to warm up
        client.clear()
        self.idle[len(lab.sites)] = client.idle_cores()
        rounds = self.bench.rounds(1, quick=1)
        for number in range(rounds):
            shift = number * len(wanted) // rounds
            for case in wanted[shift:] + wanted[:shift]:
                told = client.make(case, self.bench.options.servers)
                say(f"{case.what}: {self.bench.options.servers} servers in {told['seconds']:.1f} s")
                self.results.setdefault(case.name, []).append(told)
                self.whats[case.name] = case.what
                client.clear()

    def print(self):
        print(f"\nspread: {self.bench.options.servers} servers, {IN_FLIGHT} requests at a time; "
              f"rounds: {self.bench.rounds(1, quick=1)}; medians (least..most)")
        rows = [("", "all active s", "all accepted s", "CPU s, all", "agents' CPU s", "s, over alone")]
        alone = self.results[ALONE.name]
        for name, told in self.results.items():
            rows.append((self.whats[name], *(spread_of([each[figure] for each in told], form) for figure, form in (
                ("seconds", "%.1f"), ("asked", "%.1f"), ("cpu", "%.1f"), ("agents", "%.2f"))),
                spread_of([each["seconds"] / one["seconds"] for each, one in zip(told, alone)], "%.2f")))
        print_table(rows)
        print("idle: " + ", ".join(f"{value:.2f} cores with {count} site{'s'[:count - 1]}" for count, value in self.idle.items()))

    def add_ratios(self):
        measured = {name: told for name, told in self.results.items() if name not in (ALONE.name, DIRECT_HERE.name)}
        for figure, what in (("seconds", "time"), ("cpu", "cpu")):
            for base in (ALONE.name, DIRECT_HERE.name):
                for name, told in measured.items():
                    for each, one in zip(told, self.results[base]):
                        self.bench.add_ratio(f"{what}_spread_{name}_over_{base}", each[figure] / one[figure])
        for name, told in measured.items():
            for each in told:
                self.bench.add_ratio(f"cpu_spread_{name}_agents_over_all", each["agents"] / each["cpu"])
