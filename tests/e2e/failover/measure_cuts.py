"""How long after a cut the next site has answered: prints figures, and asserts nothing.

usage: measure_cuts.py [TIMES [CASE]...]       needs root, as all labs do

Site1 works with Site2, 4 ms away, which is cut off at some moment between two probes. `Site2; Site3` is asked with GET, in two
ways: right after the cut, and so that the request is at Site2 when the cut comes.

The same at greater distances, also behind a satellite that loses packets.

Then with a site that has never been sent anything: 4 ms or 50 ms away, as gossip has measured; one that gossip has lost
as well; and from a newcomer, which does not know how far away anybody is.
"""
import os
import random
import sys
import time

import failover_lab


def ask_after(lab):
    begin = time.monotonic()
    lab.wan.cut("Site1", "Site2")
    assert lab.ask("Site2; Site3").body == b"Site3"
    return time.monotonic() - begin


def ask_before(lab):
    hangs = failover_lab.Hangs(lab[2].service)
    lab[2].service.drop_connections()
    with lab.client() as wire:
        wire.send(failover_lab.request(Scope="Site2; Site3"))
        hangs.wait(hangs.reached)
        time.sleep(random.uniform(0, 0.5))
        begin = time.monotonic()
        lab.wan.cut("Site1", "Site2")
        assert wire.response().body == b"Site3"
        return time.monotonic() - begin


def used(ask):
    def measure(lab):
        lab.start()
        lab.warm(2)
        time.sleep(random.uniform(0.5, 1.5))  # it is probed meanwhile
        return ask(lab)

    return measure


def used_from_afar(rtt_ms, loss="0%"):
    """For a while, so that probes have seen how far it is, and what gets lost."""
    def measure(lab):
        lab.start()
        before = {"delay": f"{lab.wan.delay_ms('Site1', 'Site2')}ms", "loss": "0%"}
        lab.wan.set("Site1", "Site2", delay=f"{rtt_ms / 2}ms", loss=loss)
        try:
            failover_lab.wait_until(lambda: lab.ask("Site2; Site3").body == b"Site2", "Site2 to answer")
            failover_lab.wait_until(lambda: (path_of(lab).get("rtt_ms") or 0) > 0.9 * rtt_ms, "the path to be measured")
            until = time.monotonic() + 10 + 10 * rtt_ms / 1000
            while time.monotonic() < until:
                time.sleep(random.uniform(0.5, 1.5))
            lab.warm(2)
            return ask_after(lab)
        finally:
            lab.wan.set("Site1", "Site2", **before)

    return measure


def path_of(lab):
    return lab.view()["Site2"]["path"] or {}


def first(lab, scope, answer, at=1):
    begin = time.monotonic()
    assert lab.ask(scope, at=at).body == answer
    return time.monotonic() - begin


def first_use(number):
    def measure(lab):
        lab.start(count=4)
        lab.wan.cut("Site1", f"Site{number}")
        return first(lab, f"Site{number}; Site3", b"Site3")

    return measure


def first_use_by_newcomer(lab):
    lab.start()
    lab.newcomer()
    return first(lab, "Site2; Site5", b"Site5", at=5)


def first_use_of_lost(lab):
    lab.start()
    lab.wan.isolate("Site2")
    failover_lab.wait_until(lambda: lab.view()["Site2"]["shown"] == "unknown", "gossip to lose Site2")
    return first(lab, "Site2; Site3", b"Site3")


CASES = {"asked after the cut": used(ask_after), "cut in the middle": used(ask_before),
         "100 ms away": used_from_afar(100), "300 ms away": used_from_afar(300), "300 ms away, 1 % loss": used_from_afar(300, "1%"),
         "2 s away, 7 % loss": used_from_afar(2000, "7%"),
         "never used, 4 ms away": first_use(2), "never used, 50 ms away": first_use(4),
         "never used, at an unknown distance": first_use_by_newcomer, "never used, lost to gossip": first_use_of_lost}


def show(name, times):
    times = sorted(round(1000 * seconds) for seconds in times)
    print(f"{name}: least {times[0]} ms, median {times[len(times) // 2]} ms, most {times[-1]} ms; all: {times}", flush=True)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    network = failover_lab.Network(os.environ.get("CHEOPS", str(failover_lab.wan_lab.ROOT / "build" / "cheops")))
    try:
        for name, measure in CASES.items():
            if len(sys.argv) > 2 and name not in sys.argv[2:]:
                continue
            times = []
            for number in range(count):
                with failover_lab.Lab(network, f"{name.replace(' ', '-')}-{number}") as lab:
                    try:
                        times.append(measure(lab))
                    finally:
                        lab.wan.heal()
            show(name, times)
    finally:
        network.close()


if __name__ == "__main__":
    main()
