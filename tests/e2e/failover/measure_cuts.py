"""How long after a cut the next site has answered: prints figures, and asserts nothing.

usage: measure_cuts.py [TIMES]       needs root, as all labs do

Site1 works with Site2, 4 ms away, which is cut off at some moment between two probes. `Site2; Site3` is asked with GET, in two
ways: right after the cut, and so that the request is at Site2 when the cut comes.
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


def measure(lab, ask):
    lab.warm(2)
    time.sleep(random.uniform(0.5, 1.5))  # it is probed meanwhile
    try:
        return ask(lab)
    finally:
        lab.wan.heal()


def show(name, times):
    times = sorted(round(1000 * seconds) for seconds in times)
    print(f"{name}: least {times[0]} ms, median {times[len(times) // 2]} ms, most {times[-1]} ms; all: {times}", flush=True)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    network = failover_lab.Network(os.environ.get("CHEOPS", str(failover_lab.wan_lab.ROOT / "build" / "cheops")))
    try:
        for name, ask in (("asked after the cut", ask_after), ("cut in the middle", ask_before)):
            times = []
            for number in range(count):
                with failover_lab.Lab(network, f"{ask.__name__}-{number}") as lab:
                    lab.start()
                    times.append(measure(lab, ask))
            show(name, times)
    finally:
        network.close()


if __name__ == "__main__":
    main()
