"""The lab itself: the network does what it was told, says what is wrong, and leaves nothing behind.

Of times, only lower bounds are taken strictly: a network may be slower than it was told on a busy machine, never faster.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import time

import pytest
import wan_lab
from wan_lab import COMMANDS, Lab, LabError, command, netns, process, wait_for

UDP = (socket.AF_INET, socket.SOCK_DGRAM)
PORT = 7000
CLOCK_MS = 0.1  # what a clock's reading may be off by


# ---- helpers ----------------------------------------------------------------------------------------------------------


class Ends:
    """A UDP socket at each site. Datagrams carry a number."""

    def __init__(self, lab):
        self.lab = lab
        self.sockets = {}
        for site in lab.sites:
            self.sockets[site] = lab.socket(site, *UDP)
            self.sockets[site].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            self.sockets[site].bind((lab.address(site), PORT))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for made in self.sockets.values():
            made.close()

    def send(self, first, second, number=0, size=4):
        self.sockets[first].sendto(number.to_bytes(4, "big") + bytes(size - 4), (self.lab.address(second), PORT))

    def receive(self, site):
        return int.from_bytes(self.sockets[site].recv(2048)[:4], "big")

    def received(self, first, second):
        """The numbers that arrive, until the network has nothing more for this pair."""
        wait_for(lambda: self.lab.stats(first, second)["queued"] == 0, "the last datagram")
        numbers = []
        while select.select([self.sockets[second]], [], [], 0)[0]:
            numbers.append(self.receive(second))
        return numbers

    def round_trip_ms(self, first, second, times=5):
        """The least of some."""
        return min(self.one_round_trip_ms(first, second) for _ in range(times))

    def one_round_trip_ms(self, first, second):
        start = time.monotonic()
        self.send(first, second)
        self.receive(second)
        self.send(second, first)
        self.receive(first)
        return (time.monotonic() - start) * 1000


@pytest.fixture
def ends(net):
    with Ends(net) as made:
        yield made


def difference(lab, first, second, action):
    """What the action adds to the counts of a pair."""
    before = lab.stats(first, second)
    action()
    wait_for(lambda: lab.stats(first, second)["queued"] == 0, "the last frame")
    return {key: value - before[key] for key, value in lab.stats(first, second).items()}


# ---- delays -----------------------------------------------------------------------------------------------------------


def test_round_trips_are_those_of_the_matrix(start):
    lab = start("three", agents=False)
    with Ends(lab) as ends:
        times = {}
        for pair, wanted in ((("Site1", "Site2"), 10), (("Site1", "Site3"), 50), (("Site2", "Site3"), 100)):
            assert lab.rtt_ms(*pair) == wanted
            times[wanted] = ends.round_trip_ms(*pair)
            assert wanted - CLOCK_MS <= times[wanted] < 2 * wanted + 50
        assert times[10] < times[50] < times[100]


def test_connecting_takes_one_round_trip(net):
    net.set("Site1", "Site2", delay="30ms")
    with net.socket("Site2") as listener, net.socket("Site1") as client:
        listener.bind((net.address("Site2"), 0))
        listener.listen()
        start = time.monotonic()
        client.connect(listener.getsockname())
        assert (time.monotonic() - start) * 1000 >= 60 - CLOCK_MS


def test_delay_is_changed_live_and_in_one_direction(net, ends):
    quick = ends.round_trip_ms("Site1", "Site2")
    net.set("Site1", "Site2", one_way=True, delay="40ms")
    assert ends.round_trip_ms("Site1", "Site2") >= 40 - CLOCK_MS > quick
    assert net.delay_ms("Site1", "Site2") == 40 and net.delay_ms("Site2", "Site1") == 0
    net.set("Site1", "Site2", delay="0")
    assert ends.round_trip_ms("Site1", "Site2") < 40


def test_jitter_keeps_its_bounds_and_the_order(net, ends):
    net.set("Site1", "Site2", delay="20ms", jitter="10ms")
    times = [ends.one_round_trip_ms("Site1", "Site2") for _ in range(40)]
    assert min(times) >= 20 - CLOCK_MS
    assert max(times) - min(times) > 2  # they do differ
    for number in range(500):
        ends.send("Site1", "Site2", number)
    assert ends.received("Site1", "Site2") == list(range(500))


def test_there_is_no_traffic_but_ours(net, ends):
    """No ARP, no announcements: what tests count is what they sent."""
    before = net.control.stats()
    ends.send("Site1", "Site2")
    assert ends.received("Site1", "Site2") == [0]
    after = net.control.stats()
    assert after["switch"] == before["switch"] and after["switch"]["strangers"] == 0
    assert {pair for pair in after if after[pair] != before[pair]} == {"Site1>Site2"}


# ---- loss, duplicates, order ------------------------------------------------------------------------------------------


def lossy(lab, count):
    """Which of so many datagrams arrive."""
    with Ends(lab) as ends:
        for number in range(count):
            ends.send("Site1", "Site2", number)
        return ends.received("Site1", "Site2")


def test_loss_is_counted_and_decided_by_the_seed(start):
    matrix = {"sites": ["Site1", "Site2"], "default": {"delay": "1ms", "loss": "7%"}}
    arrived = {}
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        lab = start(matrix, agents=False, seed=seed)
        arrived[name] = lossy(lab, 3000)
        counts = lab.stats("Site1", "Site2")
        assert counts["frames"] == 3000 and counts["delivered"] == len(arrived[name]) == 3000 - counts["lost"]
        assert 140 <= counts["lost"] <= 280  # 210, give or take five deviations
        assert lab.stats("Site2", "Site1")["frames"] == 0
    assert arrived["one"] == arrived["same"] != arrived["other"]


def test_duplicates_arrive(net, ends):
    net.set("Site1", "Site2", one_way=True, duplicate="20%")

    def send():
        for number in range(1000):
            ends.send("Site1", "Site2", number)

    counts = difference(net, "Site1", "Site2", send)
    numbers = ends.received("Site1", "Site2")
    assert 130 <= counts["duplicated"] <= 270 and len(numbers) == 1000 + counts["duplicated"]
    assert sorted(set(numbers)) == list(range(1000)) and numbers == sorted(numbers)


def test_some_are_overtaken(net, ends):
    net.set("Site1", "Site2", one_way=True, delay="5ms", reorder="10%", reorder_by="30ms")

    def send():
        for number in range(1000):
            ends.send("Site1", "Site2", number)

    counts = difference(net, "Site1", "Site2", send)
    numbers = ends.received("Site1", "Site2")
    assert 50 <= counts["reordered"] <= 150 and numbers != sorted(numbers)
    assert sorted(numbers) == list(range(1000))


# ---- bandwidth --------------------------------------------------------------------------------------------------------


def test_a_line_takes_its_time(net, ends):
    net.set("Site1", "Site2", one_way=True, rate="1mbit", queue="5s")
    count, size = 50, 1000
    start = time.monotonic()
    for number in range(count):
        ends.send("Site1", "Site2", number, size)
    for number in range(count):
        assert ends.receive("Site2") == number
    assert time.monotonic() - start >= count * size * 8 / 1e6


def test_a_full_queue_drops_the_last(net, ends):
    net.set("Site1", "Site2", one_way=True, rate="1mbit", queue="10KiB")

    def send():
        for number in range(100):
            ends.send("Site1", "Site2", number, 1000)

    counts = difference(net, "Site1", "Site2", send)
    numbers = ends.received("Site1", "Site2")
    assert numbers[:10] == list(range(10))  # these find room
    assert counts["full"] >= 50 and len(numbers) == 100 - counts["full"]


def test_tcp_gets_a_good_part_of_a_line(net):
    """The other way round: the switch does not waste what there is, so TCP fills most of the line."""
    net.set("Site1", "Site2", delay="5ms", rate="20mbit", queue="100ms")
    payload = bytes(1 << 20)
    with net.socket("Site2") as listener, net.socket("Site1") as client:
        listener.bind((net.address("Site2"), 0))
        listener.listen()
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        server.settimeout(wan_lab.BOUND_S)
        start = time.monotonic()
        client.setblocking(False)
        sent = got = 0
        while got < len(payload):
            readable, writable, _ = select.select([server], [client] if sent < len(payload) else [], [], wan_lab.BOUND_S)
            if writable:
                sent += client.send(payload[sent:])
            if readable:
                got += len(server.recv(1 << 16))
        server.close()
        took = time.monotonic() - start
    assert took >= len(payload) * 8 / 20e6 * 0.95


# ---- cuts -------------------------------------------------------------------------------------------------------------


def is_cut(lab, ends, first, second):
    """Sends one, and sees whether a cut takes it."""
    counts = difference(lab, first, second, lambda: ends.send(first, second))
    assert counts["frames"] == 1 and counts["cut"] + counts["delivered"] == 1
    assert len(ends.received(first, second)) == counts["delivered"]
    return counts["cut"] == 1


def test_cut_and_heal(net, ends):
    net.cut("Site1", "Site2")
    assert is_cut(net, ends, "Site1", "Site2") and is_cut(net, ends, "Site2", "Site1")
    assert not is_cut(net, ends, "Site1", "Site3") and not is_cut(net, ends, "Site3", "Site2")
    net.heal("Site1", "Site2")
    assert not is_cut(net, ends, "Site1", "Site2") and not is_cut(net, ends, "Site2", "Site1")


def test_cut_one_way(net, ends):
    net.cut("Site1", "Site2", one_way=True)
    assert is_cut(net, ends, "Site1", "Site2") and not is_cut(net, ends, "Site2", "Site1")
    assert net.rules("Site1", "Site2")["cut"] == "yes" and net.rules("Site2", "Site1")["cut"] == "no"
    net.heal()
    assert not is_cut(net, ends, "Site1", "Site2")


def test_isolated_sites_reach_each_other_only(net, ends):
    net.isolate("Site1", "Site2")
    assert not is_cut(net, ends, "Site1", "Site2")
    assert is_cut(net, ends, "Site1", "Site3") and is_cut(net, ends, "Site3", "Site2")


def test_a_cut_takes_what_is_under_way(net, ends):
    net.set("Site1", "Site2", delay="10s")
    ends.send("Site1", "Site2", 1)
    wait_for(lambda: net.stats("Site1", "Site2")["queued"] == 1, "the datagram to be under way")
    net.cut("Site1", "Site2")
    net.heal()
    net.set("Site1", "Site2", delay="0")
    ends.send("Site1", "Site3", 2)
    assert ends.receive("Site3") == 2
    assert not select.select([ends.sockets["Site2"]], [], [], 0)[0]


def test_a_connection_survives_a_short_cut(net):
    with net.socket("Site2") as listener, net.socket("Site1") as client:
        listener.bind((net.address("Site2"), 0))
        listener.listen()
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        with server:
            server.settimeout(wan_lab.BOUND_S)
            net.cut("Site1", "Site2")
            before = net.stats("Site1", "Site2")["cut"]
            client.sendall(b"hello")
            wait_for(lambda: net.stats("Site1", "Site2")["cut"] > before, "the first attempt")
            net.heal()
            assert server.recv(5, socket.MSG_WAITALL) == b"hello"


# ---- the matrices that come along -------------------------------------------------------------------------------------


def test_twenty_cities(start):
    lab = start("europe20", agents=False)
    assert len(lab.sites) == 20 and lab.about("Site1")["city"] == "Rennes"
    rules = lab.control.table("show")
    assert len(rules) == 380 and all(float(rule["delay"][:-2]) > 0.5 for rule in rules.values())
    assert any(rules[f"Site{a}>Site{b}"]["jitter"] != rules[f"Site{b}>Site{a}"]["jitter"] for a, b in ((1, 2), (3, 4)))
    with Ends(lab) as ends:
        for second in ("Site2", "Site9", "Site16", "Site20"):
            jitter = float(rules[f"Site1>{second}"]["jitter"][:-2]) + float(rules[f"{second}>Site1"]["jitter"][:-2])
            wanted = lab.rtt_ms("Site1", second)
            measured = ends.round_trip_ms("Site1", second)
            assert wanted - jitter - CLOCK_MS <= measured < 2 * wanted + 50
        for first in lab.sites:  # everybody reaches everybody
            for second in lab.sites:
                if first != second:
                    ends.send(first, second)
        for site in lab.sites:
            for _ in range(19):
                ends.receive(site)


def test_twenty_cities_are_what_their_script_writes():
    made = subprocess.run([COMMANDS / "matrices" / "europe20"], capture_output=True, text=True, check=True, timeout=60)
    assert made.stdout == (COMMANDS / "matrices" / "europe20.yaml").read_text(encoding="utf-8")


def test_satellite(start):
    lab = start("satellite", agents=False)
    for site in ("Site1", "Site2", "Site3"):
        assert lab.rtt_ms(site, "Site4") == 2000
        assert lab.rules(site, "Site4")["loss"] == lab.rules("Site4", site)["loss"] == "7%"
    assert lab.rtt_ms("Site1", "Site2") == 20
    lab.set("Site1", "Site4", loss="0")
    with Ends(lab) as ends:
        assert ends.round_trip_ms("Site1", "Site4", times=1) >= 2000 - 2 * 20 - CLOCK_MS


def test_first_sites_of_a_matrix(start):
    lab = start("three", sites=2, agents=False)
    assert lab.sites == ["Site1", "Site2"] and lab.rtt_ms("Site1", "Site2") == 10


def test_one_site_alone(start):
    lab = start(1, agents=False)
    assert lab.control.table("show") == {}
    assert lab.run("Site1", ["ip", "-br", "address"]).stdout.split()[-1] == "10.77.0.1/16"


@pytest.mark.parametrize("text, complaint", [
    ("sites: [", "is not YAML"),
    ("[]", "has to be a mapping"),
    ("{}", "sites has to be a mapping of names"),
    ("sites: ['a b']", "is no name"),
    ("sites: [A, B]\nlinks: {}", "has no key 'links'; the keys are: sites, default, pairs"),
    ("sites: [A, B]\npairs: {A<>C: {delay: 1ms}}", "'A<>C' is no pair of two of the sites"),
    ("sites: [A, B]\npairs: {A<>A: {delay: 1ms}}", "is no pair"),
    ("sites: [A, B]\npairs: {A<>B: {latency: 1ms}}", "has no key 'latency'"),
    ("sites: [A, B]\npairs: {A>B: {rtt: 1ms}}", "rtt is a duration such as 10ms, for both ways"),
    ("sites: [A, B]\npairs: {A<>B: {delay: 1}}", "delay: `1` is not a duration; write for example 10ms"),
])
def test_a_matrix_that_is_wrong(tmp_path, text, complaint):
    path = tmp_path / "matrix.yaml"
    path.write_text(text, encoding="utf-8")
    run = command("up", path, "--no-agents", "--dir", tmp_path / "labs")
    assert run.returncode == 1 and complaint in run.stderr and run.stderr.count("\n") == 1, run
    assert not list((tmp_path / "labs").glob("*"))


# ---- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path):
    """user(name, ...): runs a command on labs of this test's folder, all of which are ended after it."""
    def run(name, *arguments):
        return command(name, "--dir", tmp_path, *arguments)

    yield run
    run("down", "--all")


@pytest.fixture(scope="module")
def pair():
    """Two sites, for tests that change nothing."""
    with Lab(2, agents=False) as lab:
        yield lab


def test_a_life_of_a_lab(user, tmp_path):
    up = user("up", 3, "--no-agents", "--lab", "story")
    try:
        assert up.returncode == 0 and up.stderr == "" and "lab story: 3 sites" in up.stdout, up
        shown = user("show")
        assert "Site1  10.77.0.1  cheops-story-Site1" in shown.stdout and "everywhere: jitter=0ms" in shown.stdout, shown
        assert user("set", "Site1", "Site2", "delay=10ms", "loss=7%").returncode == 0
        assert user("set", "Site1", "Site2", "jitter=1ms", "--one-way").returncode == 0
        assert user("cut", "Site1", "Site3", "--one-way").returncode == 0
        pairs = json.loads(user("show", "--json").stdout)["pairs"]
        assert [pairs["Site1>Site2"][key] for key in ("delay", "loss", "jitter")] == ["10ms", "7%", "1ms"]
        assert [pairs["Site2>Site1"][key] for key in ("delay", "loss", "jitter")] == ["10ms", "7%", "0ms"]
        assert pairs["Site1>Site3"]["cut"] == "yes" and pairs["Site3>Site1"]["cut"] == "no"
        assert "cut" in user("show", "Site1", "Site3").stdout
        assert user("heal", "--all").returncode == 0
        assert "frames" in user("show", "--stats").stdout
        ran = user("run", "Site2", "ip", "-br", "address", "show", "wan0")
        assert ran.returncode == 0 and "10.77.0.2/16" in ran.stdout
        assert user("run", "Site2", "sh", "-c", "exit 7").returncode == 7
    finally:
        down = user("down")
    assert down.returncode == 0 and down.stdout == "lab story is down\n", down
    assert "story" not in netns.all_of_labs() and not list(tmp_path.glob("*"))


@pytest.mark.parametrize("arguments, complaint", [
    (["set", "Site1", "Site9", "delay=1ms"], "no site `Site9`; there are 2, Site1 to Site2"),
    (["set", "Site1", "Site2", "delay=1"], "delay: `1` is not a duration; write for example 10ms"),
    (["set", "Site1", "Site2", "dealy=1ms"], "did you mean `delay`?"),
    (["cut", "Site1", "Site1"], "there is no network between it and itself"),
    (["run", "Site9", "true"], "no site 'Site9'; there is: Site1, Site2"),
    (["run", "Site1", "/nowhere"], "cannot run /nowhere"),
    (["cut", "Site1", "Site2", "--lab", "none"], "no lab none runs in"),
    (["heal", "Site1"], "give two sites, or --all"),
])
def test_what_is_refused_says_what_would_be_right(pair, arguments, complaint):
    run = command(arguments[0], "--dir", pair.base, *arguments[1:])
    assert run.returncode in (1, 2) and complaint in run.stderr, run


@pytest.mark.parametrize("name", ["up", "down", "cut", "heal", "set", "show", "run", "measure"])
def test_each_command_explains_itself(name):
    run = command(name, "--help")
    assert run.returncode == 0 and run.stdout.startswith(f"usage: lab/wan/{name} ") and run.stderr == ""


def test_no_lab_and_several(user):
    assert "no lab runs" in user("show").stderr
    for name in ("one", "two"):
        assert user("up", 2, "--no-agents", "--lab", name).returncode == 0
    assert "several labs run: one, two; say which with --lab" in user("show").stderr
    assert user("cut", "Site1", "Site2", "--lab", "two").returncode == 0
    assert json.loads(user("show", "--json", "--lab", "one").stdout)["pairs"]["Site1>Site2"]["cut"] == "no"
    taken = user("up", 2, "--no-agents", "--lab", "one")
    assert taken.returncode == 1 and "there is a lab one already" in taken.stderr
    assert user("down", "--all").stdout == "lab one is down\nlab two is down\n"


def test_programs_that_are_missing(user):
    run = user("up", 2, "--no-agents", "--switch", "/nowhere")
    assert run.returncode == 1 and "/nowhere is not a program; build it with scripts/build lab" in run.stderr


def test_a_command_ends_with_the_lab(user, tmp_path):
    user("up", 2, "--no-agents")
    with subprocess.Popen([COMMANDS / "run", "--dir", tmp_path, "Site1", "sh", "-c", "echo here; exec sleep 1000"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "here\n"
        assert user("down").returncode == 0
        assert child.wait(wan_lab.BOUND_S) == 128 + signal.SIGKILL
        assert "the lab has ended" in child.stderr.read()


# ---- the control socket -----------------------------------------------------------------------------------------------


def test_control_socket_withstands_its_clients(net):
    long, half, mute = (socket.socket(socket.AF_UNIX) for _ in range(3))
    folder = os.open(net.folder, os.O_PATH)
    for made in (long, half, mute):
        made.settimeout(wan_lab.BOUND_S)
        made.connect(f"/proc/self/fd/{folder}/control")
    os.close(folder)
    half.sendall(b"cut Site1>Si")
    mute.sendall(b"show\n" * 2000)  # and never reads
    long.sendall(b"x" * 5000)
    assert long.makefile("rb").readline() == b"error: a line of more than 1024 bytes\n"
    with pytest.raises(LabError, match="control characters"):
        net.control.run("\x01\x02")
    half.sendall(b"te2\n")
    assert half.makefile("rb").readline() == b"ok\n" and net.rules("Site1", "Site2")["cut"] == "yes"
    for made in (long, half, mute):
        made.close()
    assert net.control.run("sites") == net.sites


# ---- the end ----------------------------------------------------------------------------------------------------------


def test_two_labs_do_not_meet(start):
    one, two = start(2, agents=False), start(2, agents=False)
    assert one.id != two.id
    one.cut("Site1", "Site2")
    with Ends(one) as first, Ends(two) as second:
        assert is_cut(one, first, "Site1", "Site2") and not is_cut(two, second, "Site1", "Site2")


def kill_supervisor(lab):
    lab.process.kill()
    lab.process.wait(wan_lab.BOUND_S)
    for described in lab.state["processes"].values():
        wait_for(lambda described=described: not process.is_alive(described), "the end of the switch")


@pytest.mark.parametrize("remedy", [["down", "--all"], ["down"], ["up", "2", "--no-agents"]])
def test_after_a_kill_the_next_command_cleans_up(start, tmp_path, remedy):
    other = start(2, agents=False)
    lab = Lab(3, agents=False)
    child = lab.popen("Site1", ["sleep", "1000"])
    kill_supervisor(lab)
    assert lab.id in netns.all_of_labs()
    try:
        run = command(remedy[0], "--dir", lab.base, *remedy[1:])
        assert run.returncode == 0, run
        assert lab.id not in netns.all_of_labs() and not lab.folder.exists()
        assert not pathlib.Path(f"/run/cheops-lab/locks/{lab.id}").exists()
        if remedy[0] == "down":
            assert f"removed cheops-{lab.id}-Site1, left over" in run.stdout
        assert other.id in netns.all_of_labs()  # one that is alive is left alone
        with Ends(other) as ends:
            assert not is_cut(other, ends, "Site1", "Site2")
        assert child.poll() is None  # nobody but who started it ends it
    finally:
        child.kill()
        child.wait()
        command("down", "--all", "--dir", lab.base)
        lab.control.close()
        shutil.rmtree(lab.base, ignore_errors=True)


def test_leftovers_of_an_unknown_folder_are_found_by_their_name(start, tmp_path):
    lab = Lab(2, agents=False)
    kill_supervisor(lab)
    shutil.rmtree(lab.base)
    run = command("down", "--all", "--dir", tmp_path)
    assert run.returncode == 0 and f"removed cheops-{lab.id}-Site2, left over" in run.stdout
    assert lab.id not in netns.all_of_labs()
    lab.control.close()


def test_a_lab_ends_on_a_signal(tmp_path):
    lab = Lab(2, agents=False)
    lab.process.send_signal(signal.SIGTERM)
    lab.close()


def test_a_lab_ends_with_its_switch():
    lab = Lab(2, agents=False)
    switch = lab.state["processes"]["switch"]
    assert process.end(switch, signals=(signal.SIGKILL,))
    assert lab.process.wait(wan_lab.BOUND_S) == 1
    assert "the switch ended" in lab.stderr() and lab.id not in netns.all_of_labs()
    lab.control.close()
    shutil.rmtree(lab.base)


def test_interrupted_while_it_starts(tmp_path):
    """At some moment of its start, each time another one: it ends, and leaves nothing."""
    for number in range(8):
        name = f"start{number}"
        child = subprocess.Popen([COMMANDS / "up", "20", "--no-agents", "--attached", "--lab", name, "--dir", tmp_path],
                                 env=wan_lab.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        if number % 2:
            wait_for(lambda: name in netns.all_of_labs() or child.poll() is not None, "its namespaces")
        else:
            wait_for(lambda: (tmp_path / name).exists() or child.poll() is not None, "its folder")
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=wan_lab.BOUND_S)
        assert child.returncode in (0, 1), said
        assert name not in netns.all_of_labs() and not (tmp_path / name).exists()


# ---- agents -----------------------------------------------------------------------------------------------------------


def test_agents_and_the_sample_application(start):
    lab = start("three")
    for site in lab.sites:
        assert lab.ask(site, "api", "/cheops/v1/health").json["site"] == site
        assert lab.ask("Site1", "compute", "/whoami?via=image", headers={"Scope": f"image: {site}"}).json == {
            "service": "compute", "site": "Site1", "via": {"service": "image", "site": site}}
    begin = time.monotonic()
    assert lab.ask("Site2", "compute", "/whoami", headers={"Scope": "Site3"}).json["site"] == "Site3"
    assert (time.monotonic() - begin) * 1000 >= 100 - CLOCK_MS
    seen = json.loads(lab.cheops("Site3", "sites", "-o", "json").stdout)["sites"]
    assert sorted(site["name"] for site in seen) == lab.sites


def test_an_agent_is_killed_and_started_again(start):
    lab = start(2)
    lab.kill("Site2")
    with pytest.raises(OSError):
        lab.ask("Site2", "api", "/cheops/v1/health")
    wait_for(lambda: "Site2/agent ended" in (lab.folder / "supervisor.log").read_text(encoding="utf-8"), "a note of it")
    lab.start_agent("Site2")
    assert lab.ask("Site2", "compute", "/whoami").json["site"] == "Site2"


def test_agents_and_services_end_with_a_killed_lab():
    lab = Lab(2)
    assert len(lab.state["processes"]) == 1 + 2 * 4
    kill_supervisor(lab)
    assert command("down", "--all", "--dir", lab.base).returncode == 0
    assert lab.id not in netns.all_of_labs()
    lab.control.close()
    shutil.rmtree(lab.base)


def test_an_agent_that_does_not_start_is_told(tmp_path):
    fake = tmp_path / "cheops"
    fake.write_text("#!/bin/sh\n[ \"$1\" = agent ] && echo 'no agent today' >&2 && exit 3\nexit 0\n", encoding="utf-8")
    fake.chmod(0o755)
    run = command("up", 2, "--dir", tmp_path / "labs", "--cheops", fake, "--sample", wan_lab.CHEOPS.parent / "cheops-sample",
                  "--switch", wan_lab.CHEOPS.parent / "lab" / "cheops-wan-switch")
    assert run.returncode == 1 and "agent of Site1 ended, with status 3" in run.stderr and "no agent today" in run.stderr
    assert not list((tmp_path / "labs").glob("*"))
