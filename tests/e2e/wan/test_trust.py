"""Whom a site trusts: tokens, certificates that end and renew, other meshes, sites that are shut out, roots that change,
clocks that are wrong, and datagrams that were not sent by who they say."""
import base64
import contextlib
import datetime
import http.client
import json
import pathlib
import re
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading

import pytest
import yaml
from played import Played
from wan_lab import BOUND_S, CHEOPS, PEER_PORT, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import mesh_maker  # noqa: E402

JSON = {"Content-Type": "application/json"}


def whoami(lab, site, scope):
    return lab.ask(site, "compute", "/whoami", headers={"Scope": scope})


def serves(lab, site):
    assert whoami(lab, site, site).json["site"] == site
    made = lab.ask(site, "image", "/images", "POST", JSON, '{"name": "debian"}')
    assert made.status == 201, made


def ask_peer(lab, at, to, path="/cheops/v1/health", state=None, method="GET", body=None, anyone=False):
    """Status and text of a request from one site to the port for agents of another; `state`: who shows a certificate."""
    connection = http.client.HTTPSConnection(lab.address(to), PEER_PORT, timeout=BOUND_S)
    plain = lab.socket(at)
    plain.connect((lab.address(to), PEER_PORT))
    context = mesh_maker.tls_client(state)
    if anyone:
        context.verify_mode = ssl.CERT_NONE
    connection.sock = context.wrap_socket(plain)
    try:
        connection.request(method, path, body, JSON)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def refused_peer(lab, at, to, state, anyone=False):
    """True: the handshake, or the first request after it, does not get through with this certificate. `anyone`: whoever the
    other side is."""
    try:
        ask_peer(lab, at, to, state=state, anyone=anyone)
    except OSError:
        return True
    return False


def expires(lab, at, name):
    return datetime.datetime.fromisoformat(lab.view(at)[name]["certificate"]["expires"].replace("Z", "+00:00"))


def now():
    return datetime.datetime.now(datetime.timezone.utc)


# ---- tokens -------------------------------------------------------------------------------------------------------------


def test_tokens_are_good_once_and_for_a_while(start):
    lab = start(2, join=1)
    config = yaml.safe_load(lab.path("Site2", "agent.yaml").read_text(encoding="utf-8"))

    def join(name, token, refused=None):
        """As another site than Site2, in its place."""
        path, state = lab.path("Site2", "other.yaml"), lab.path("Site2", "other")
        path.write_text(yaml.safe_dump({**config, "site": name, "state": str(state)}), encoding="utf-8")
        run = lab.cheops("Site2", "site", "join", token, "-c", str(path))
        assert run.returncode == 1 and refused in run.stderr and run.stderr.count("\n") == 1, run
        assert not state.exists() or not list(state.iterdir())

    def present(token, name):
        """To the authority itself, by one who does not look at the token first."""
        body = json.dumps({"token": token, "name": name, "request": base64.b64encode(b"no request").decode()})
        status, text = ask_peer(lab, "Site2", "Site1", "/cheops/v1/join", method="POST", body=body)
        return status, json.loads(text)["type"]

    token, short, named = lab.token(), lab.token(ttl="1s"), lab.token("Site5")
    lab.join("Site2", token)
    lab.wait_present()
    join("Site3", token, "The token is not good: the token was used already, and serves once")
    # It is also struck off on the disk.
    lab.kill("Site1")
    lab.start_agent("Site1")
    join("Site3", token, "the token was used already")
    join("Site3", named, "the token is for a site named `Site5`, and this one is `Site3`")
    assert present(named, "Site3") == (403, "urn:cheops:problem:token-for-another")
    wait_for(lambda: present(short, "Site3") == (403, "urn:cheops:problem:token-expired"), "the end of a token")
    join("Site3", short, "by the clock of this machine")
    changed = named[:-8] + ("A" if named[-8] != "A" else "B") + named[-7:]
    assert present(changed, "Site5") == (403, "urn:cheops:problem:token-unknown")
    refused = lab.events("Site1", "a site was refused that wanted to join")
    for why in ("token-used", "token-for-another", "token-expired", "token-unknown"):
        assert [line for line in refused if f"why={why}" in line], (why, refused)
    lab.wait_present()


# ---- certificates that end ----------------------------------------------------------------------------------------------

LIFETIME_S = 12


class Traffic:
    """Requests from and to each site, one after the other, until it is stopped; what went wrong."""

    def __init__(self, lab, pairs):
        self.lab, self.wrong, self.count, self.over = lab, [], 0, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=pair) for pair in pairs]

    def run(self, start, end):
        while not self.over.is_set():
            try:
                answer = whoami(self.lab, start, end)
                if answer.status != 200 or answer.json["site"] != end:
                    self.wrong.append((start, end, answer))
            except OSError as error:
                self.wrong.append((start, end, error))
            self.count += 1
            self.over.wait(0.05)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(BOUND_S)


def test_certificates_renew_themselves_and_one_that_has_ended_is_refused(start):
    """Those of Site2 and Site3 are short; that of Site1 is long, so that Site3 still finds somebody to talk to."""
    lab = start(3, join=1)
    lab.kill("Site1")
    lab.path("Site1", "state", "lifetime").write_text(f"{LIFETIME_S}\n", encoding="utf-8")
    lab.start_agent("Site1")
    for site in ("Site2", "Site3"):
        lab.join(site)
    lab.wait_present()
    # While requests go on, without a restart and without one of them failing.
    pids = {site: lab.pid(site) for site in lab.sites}
    first = {site: expires(lab, "Site1", site) for site in ("Site2", "Site3")}
    with Traffic(lab, [("Site1", "Site2"), ("Site2", "Site3"), ("Site3", "Site1")]) as traffic:
        for site, end in first.items():
            wait_for(lambda site=site, end=end: all(expires(lab, at, site) > end for at in lab.sites), f"{site} to renew")
            wait_for(lambda site=site: lab.events(site, "the certificate was renewed"), f"{site} to say so")
        wait_for(lambda: now() > max(first.values()), "the end of the first certificates")
        count = traffic.count
        wait_for(lambda: traffic.count > count + 30, "requests after that")
    assert not traffic.wrong, traffic.wrong[:3]
    assert pids == {site: lab.pid(site) for site in lab.sites}
    # One that was away for too long.
    lab.stop("Site3")
    end = end_of(lab.path("Site3", "state", "site.crt"))
    wait_for(lambda: now() > end + datetime.timedelta(seconds=1), "the end of Site3's certificate")
    failures = lab.metric("Site1", "cheops_tls_failures_total")
    strangers = lab.metric("Site1", "cheops_gossip_strangers_total")
    since = len(lab.log("Site3"))
    lab.start_agent("Site3")
    serves(lab, "Site3")
    word = wait_for(lambda: lab.events("Site3", "the certificate of this site has expired: other sites refuse it", since), "a word")
    assert "`cheops site remove` this one, then `cheops site token`" in word[0]
    complaint = wait_for(lambda: lab.events("Site3", "the certificate cannot be renewed", since), "what is wrong")
    assert "refused our certificate: certificate expired" in complaint[0], complaint
    answer = whoami(lab, "Site3", "Site1")
    assert answer.status == 502 and "refused our certificate: certificate expired" in answer.json["detail"], answer
    lab.wait_metric("Site1", "cheops_tls_failures_total", failures)
    answer = whoami(lab, "Site1", "Site3")
    assert answer.status == 502 and "has expired: it was valid until" in answer.json["detail"], answer
    lab.wait_metric("Site1", "cheops_gossip_strangers_total", strangers)
    lab.wait_shown(("Site1", "Site2"), {"Site1": "present", "Site2": "present", "Site3": "absent"})
    assert re.search(r"Site3 .* !", lab.cheops("Site1", "sites").stdout)
    # The way back.
    lab.kill("Site3")
    lab.site("Site1", "remove", "Site3", "--yes")
    shutil.rmtree(lab.path("Site3", "state"))
    lab.join("Site3")
    lab.wait_present()
    assert whoami(lab, "Site3", "Site2").json["site"] == "Site2" and whoami(lab, "Site2", "Site3").json["site"] == "Site3"


def test_a_site_that_was_away_longer_than_the_certificates_of_others_last(start):
    """What it knows of them has ended, and they do not look for one that stopped. Its own certificate is good."""
    lab = start(3, join=0)
    lifetime = lab.path("Site1", "state", "lifetime")
    lab.site("Site1", "init", "--lifetime", "20s")
    lifetime.write_text("86400\n", encoding="utf-8")  # for Site3 alone: Site1 renews its own after 13 s
    lab.start_agent("Site1")
    lab.join("Site3")
    lab.kill("Site1")
    lifetime.write_text(f"{LIFETIME_S}\n", encoding="utf-8")
    lab.start_agent("Site1")
    lab.join("Site2")
    lab.wait_present()
    ends = max(expires(lab, "Site3", site) for site in ("Site1", "Site2"))
    assert ends < now() + datetime.timedelta(seconds=30) and end_of(lab.path("Site3", "state", "site.crt")) > ends
    lab.stop("Site3")
    known = max(expires(lab, "Site1", site) for site in ("Site1", "Site2"))
    wait_for(lambda: now() > max(known, ends) + datetime.timedelta(seconds=1), "the end of all that Site3 knows")
    opened = lab.metric("Site2", "cheops_gossip_opened_total")
    lab.start_agent("Site3")
    serves(lab, "Site3")
    lab.wait_present()
    wait_for(lambda: all(expires(lab, "Site3", site) > max(known, ends) for site in ("Site1", "Site2")),
             "certificates that are good, of both")
    lab.wait_metric("Site2", "cheops_gossip_opened_total", opened)
    assert whoami(lab, "Site3", "Site2").json["site"] == "Site2" and whoami(lab, "Site2", "Site3").json["site"] == "Site3"


def end_of(certificate):
    run = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-enddate"], check=True, capture_output=True,
                         text=True)
    end = datetime.datetime.strptime(run.stdout.strip(), "notAfter=%b %d %H:%M:%S %Y GMT")
    return end.replace(tzinfo=datetime.timezone.utc)


# ---- another mesh -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("knows_the_old_one", (False, True))
def test_a_site_of_another_mesh(start, knows_the_old_one):
    """It has the name and the address of Site3, knows our sites, and trusts our root; but its key was certified by another
    one. What it knows of us was written down before or after our own Site3 stopped: that one has its name, and is older."""
    lab = start(3)
    state, before, known = (lab.path("Site3", folder) for folder in ("state", "before", "known"))
    config = yaml.safe_load(lab.path("Site3", "agent.yaml").read_text(encoding="utf-8"))
    other = lab.path("Site3", "other.yaml")
    other.write_text(yaml.safe_dump({**config, "site": "Site9", "state": str(known)}), encoding="utf-8")

    def join_as_another():
        assert lab.cheops("Site3", "site", "join", lab.token("Site9"), "-c", str(other)).returncode == 0
        assert (b"Site3" in (known / "records.join").read_bytes()) == knows_the_old_one

    if knows_the_old_one:
        join_as_another()
    lab.stop("Site3")
    if not knows_the_old_one:
        join_as_another()
    shutil.move(state, before)
    lab.site("Site3", "init")
    own = (state / "roots.pem").read_text(encoding="utf-8")
    lab.site("Site1", "remove", "Site9", "--yes")
    shutil.copy(known / "records.join", state)
    (state / "roots.pem").write_text(own + (known / "roots.pem").read_text(encoding="utf-8"), encoding="utf-8")
    strangers = lab.metric("Site2", "cheops_gossip_strangers_total")
    failures = {site: lab.metric(site, "cheops_tls_failures_total") for site in ("Site1", "Site2")}
    since = len(lab.log("Site3"))
    lab.start_agent("Site3")
    serves(lab, "Site3")
    refusals = lab.events("Site3", "the other sites refuse this one", since)
    assert ["the name `Site3` is that of another site" in line for line in refusals[:1]] == [True] * knows_the_old_one
    # To us it is nobody, whatever it says.
    lab.wait_metric("Site2", "cheops_gossip_strangers_total", strangers)
    answer = whoami(lab, "Site2", "Site3")
    assert answer.status == 502 and "is not trusted" in answer.json["detail"], answer
    for site in ("Site1", "Site2"):
        answer = whoami(lab, "Site3", site)
        assert answer.status == 502 and re.search("refused our certificate", answer.json["detail"]), answer
        lab.wait_metric(site, "cheops_tls_failures_total", failures[site])
        assert refused_peer(lab, "Site3", site, state)
        status, text = ask_peer(lab, "Site3", site, "/")  # with no certificate at all
        assert status == 403 and "not-a-peer" in text
        assert lab.metric(site, "cheops_refused_peers_total") >= 1
    assert lab.shown("Site1") == lab.shown("Site2") == {"Site1": "present", "Site2": "present", "Site3": "absent"}
    # And we to it, where it does not trust our root.
    lab.kill("Site3")
    (state / "roots.pem").write_text(own, encoding="utf-8")
    lab.start_agent("Site3")
    assert list(lab.shown("Site3")) == ["Site3"]
    assert refused_peer(lab, "Site1", "Site3", lab.path("Site1", "state"), anyone=True)
    assert lab.metric("Site3", "cheops_tls_failures_total") >= 1


# ---- shut out -----------------------------------------------------------------------------------------------------------


def test_a_revoked_site_is_shut_out_at_once(start):
    """What is under way ends, also on connections that are open; nothing begins any more."""
    lab = start(4)
    here, there = Played(lab, "Site2"), Played(lab, "Site3")
    with contextlib.ExitStack() as stops:
        stops.callback(here.stop)
        stops.callback(there.stop)
        assert whoami(lab, "Site3", "Site2").status == whoami(lab, "Site2", "Site3").status == 200
        here.hold(), there.hold()
        answers = {}

        def ask(start, end):
            answers[start] = whoami(lab, start, end)

        asking = [threading.Thread(target=ask, args=pair) for pair in (("Site3", "Site2"), ("Site2", "Site3"))]
        for thread in asking:
            thread.start()
        here.wait_asked(2), there.wait_asked(2)
        before = lab.wait_stored("Site3", "Site1", "Site2", "Site4")
        lab.site("Site1", "revoke", "Site3", "--yes")
        for thread in asking:
            thread.join(BOUND_S)
        assert answers["Site2"].status == 502 and "shut out meanwhile" in answers["Site2"].json["detail"], answers
        assert answers["Site3"].status in (403, 502), answers
        here.wait_given_up(), there.wait_given_up()
        assert here.runs() == there.runs() == 2  # nor is it tried once more
        here.release(), there.release()
    rest = ["Site1", "Site2", "Site4"]
    lab.wait_shown(rest, {"Site1": "present", "Site2": "present", "Site3": "revoked", "Site4": "present"})
    wait_for(lambda: lab.events("Site3", "the other sites refuse this one"), "Site3 to say so")
    assert [line for line in lab.events("Site2", "a site was revoked, and is shut out") if "site=Site3" in line]
    assert re.search(r"Site3 +revoked", lab.cheops("Site4", "sites").stdout)
    # It goes on all the same: as somebody does who has its key.
    strangers = {site: lab.metric(site, "cheops_gossip_strangers_total") for site in rest}
    lab.kill("Site3")
    since = len(lab.log("Site3"))
    lab.start_agent("Site3")
    wait_for(lambda: lab.events("Site3", "this site was revoked: the others no longer talk to it", since), "it to know")
    lab.kill("Site3")
    lab.path("Site3", "state", "sites").write_bytes(before)
    since = len(lab.log("Site3"))
    lab.start_agent("Site3")
    wait_for(lambda: lab.events("Site3", "this site was revoked", since), "somebody to tell it")
    lab.configure("Site3", tags={"hello": "world"})
    for site in rest:
        lab.wait_metric(site, "cheops_gossip_strangers_total", strangers[site])
        status, text = ask_peer(lab, "Site3", site, state=lab.path("Site3", "state"))
        assert status == 403 and "the certificate of this site was revoked" in text
        answer = whoami(lab, "Site3", site)
        assert answer.status >= 400, answer
        answer = whoami(lab, site, "Site3")
        assert answer.status >= 400 and "Site3" in answer.json["detail"], answer
        assert not lab.view(site)["Site3"].get("tags")
    assert all(lab.shown(site)["Site3"] == "revoked" for site in rest)
    # Its certificate is not renewed, its name stays taken, and one that starts later knows of it.
    lab.site("Site1", "token", "Site3", refused="The name is taken")
    lab.kill("Site4")
    lab.start_agent("Site4")
    assert lab.shown("Site4")["Site3"] == "revoked"
    status, _ = ask_peer(lab, "Site3", "Site4", state=lab.path("Site3", "state"))
    assert status == 403
    serves(lab, "Site3")


def retire_root(lab, *renewing):
    """At the first site, which has the authority, once these have renewed."""
    for site in renewing:
        wait_for(lambda site=site: lab.events(site, "the certificate was renewed"), f"{site} to renew")

    def is_retired():
        run = lab.cheops("Site1", "site", "root", "retire", "--yes", "-c", str(lab.path("Site1", "agent.yaml")))
        assert run.returncode == 0 or "still have a certificate of the old root" in run.stderr, run
        return run.returncode == 0

    wait_for(is_retired, "all sites to have a certificate of the new root")
    for site in ("Site1", *renewing):
        wait_for(lambda site=site: len(roots(lab, site)) == 1, f"{site} to trust one root")


@pytest.mark.parametrize("root", ["the same root", "a new root"])
def test_a_site_that_was_removed_while_it_was_cut_off_is_told(start, root):
    """The word of the authority did not reach it, and nobody probes it any more: it hears it from whom it asks. That word may be
    signed by a root that it has never heard of."""
    lab = start(3)
    lab.isolate("Site3")
    lab.site("Site1", "remove", "Site3", "--yes")
    lab.wait_present("Site1", "Site2")
    if root == "a new root":
        lab.site("Site1", "root", "rotate")
        retire_root(lab, "Site2")
    since = len(lab.log("Site3"))
    lab.heal()
    line, = wait_for(lambda: lab.events("Site3", "the other sites refuse this one", since), "Site3 to say so")
    assert "this site was removed: the others no longer talk to it" in line
    serves(lab, "Site3")
    # It says so again when it starts, and asks nobody any more.
    lab.kill("Site3", number=signal.SIGTERM)
    strangers = {site: lab.metric(site, "cheops_gossip_strangers_total") for site in ("Site1", "Site2")}
    since = len(lab.log("Site3"))
    lab.start_agent("Site3")
    assert lab.events("Site3", "this site was removed: the others no longer talk to it", since)
    serves(lab, "Site3")
    for site in strangers:
        probes = lab.metric(site, "cheops_gossip_probes_total")
        lab.wait_metric(site, "cheops_gossip_probes_total", probes + 5)
        assert lab.metric(site, "cheops_gossip_strangers_total") == strangers[site]
    lab.wait_present("Site1", "Site2")


# ---- a new root ---------------------------------------------------------------------------------------------------------


def roots(lab, site):
    """The roots that a site trusts: {name: whether it signs}."""
    return lab.ask(site, "api", "/cheops/v1/authority").json["roots"]


def test_one_root_replaces_the_other(start):
    lab = start(4, join=3)
    joined = lab.sites[:3]
    old = lab.path("Site2", "old")
    shutil.copytree(lab.path("Site2", "state"), old)
    with Traffic(lab, [("Site1", "Site2"), ("Site2", "Site3"), ("Site3", "Site1")]) as traffic:
        lab.site("Site1", "root", "rotate")
        lab.site("Site1", "root", "rotate", refused="one root is replacing another already")
        for site in joined:
            wait_for(lambda site=site: len(roots(lab, site)) == 2, f"{site} to trust both roots")
        assert lab.site("Site1", "root", "list").count("\n") >= 2
        # Both are good: the new one for who joins now, the old one for who has not renewed.
        lab.join("Site4")
        lab.wait_present()
        assert whoami(lab, "Site4", "Site2").json["site"] == "Site2"
        assert ask_peer(lab, "Site2", "Site3", state=old, anyone=True)[0] == 200
        retire_root(lab, *joined[1:])
        wait_for(lambda: len(roots(lab, "Site4")) == 1, "Site4 to trust one root")
    assert not traffic.wrong, traffic.wrong[:3]
    assert len({str([root["id"] for root in roots(lab, site)]) for site in lab.sites}) == 1
    assert refused_peer(lab, "Site2", "Site3", old, anyone=True)
    lab.wait_present()
    for site in ("Site2", "Site4"):  # all of that is on the disk
        lab.kill(site)
        lab.start_agent(site)
    lab.wait_present()
    assert whoami(lab, "Site2", "Site4").json["site"] == "Site4"


# ---- clocks -------------------------------------------------------------------------------------------------------------


def fake_clock(offset):
    """The environment of a process whose clock is wrong: the time of day, not how fast it goes."""
    libraries = [str(path) for path in pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")]
    assert libraries, "there is no libfaketime; install the package faketime (scripts/deps test)"
    linked = subprocess.run(["ldd", CHEOPS], check=True, capture_output=True, text=True).stdout
    sanitizer = re.findall(r"=> (\S*/libasan\S*)", linked)  # has to come first
    return {"LD_PRELOAD": " ".join(sanitizer + libraries), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1"}


def test_a_clock_that_is_an_hour_off(start):
    """It takes part like any other, at a new site, at one that had the right time before, and at the authority."""
    lab = start(4, join=3)
    for number, offset in enumerate(("-1h", "+1h", "-1h")):
        lab.kill("Site3", number=signal.SIGKILL if number else signal.SIGTERM)
        since = len(lab.log("Site3"))
        lab.start_agent("Site3", **fake_clock(offset))
        line = wait_for(lambda: lab.events("Site3", "msg=ready", since), "its first words")[0]
        clock = datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00"))
        assert abs(abs((clock - now()).total_seconds()) - 3600) < 600, clock
        lab.wait_present(*lab.sites[:3])
        # What it says of itself counts, also where it has said something before, at a later time.
        lab.configure("Site3", tags={"turn": str(number)})
        for site in ("Site1", "Site2"):
            wait_for(lambda site=site: lab.view(site)["Site3"]["tags"] == {"turn": str(number)}, f"{site} to hear of it")
            assert whoami(lab, "Site3", site).json["site"] == site
            assert whoami(lab, site, "Site3").json["site"] == "Site3"
            assert whoami(lab, site, "tagged(turn=%d)" % number).json["site"] == "Site3"
    for offset in ("+1h", "-1h"):
        lab.kill("Site1")
        lab.start_agent("Site1", **fake_clock(offset))
        lab.wait_present(*lab.sites[:3])
        lab.join("Site4", lab.token("Site4", ttl="2h"))
        lab.wait_present()
        assert whoami(lab, "Site4", "Site3").json["site"] == "Site3"
        lab.site("Site1", "remove", "Site4", "--yes")
        lab.wait_shown(lab.sites[:3], {site: "present" for site in lab.sites[:3]})
        lab.kill("Site4")
        shutil.rmtree(lab.path("Site4", "state"))


# ---- datagrams ----------------------------------------------------------------------------------------------------------

ETHERNET, IP, UDP = 14, 20, 8
IPPROTO_UDP = 17
DATA = 1  # the kind of a datagram, which is its second byte
COUNTERS = ("opened", "replayed", "forged", "stale", "strangers", "not_ours", "malformed", "greetings", "refused_records")


def counters(lab, site):
    text = lab.ask(site, "api", "/cheops/v1/metrics").bytes.decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("cheops_gossip_"))
    return {name: int(values[f"cheops_gossip_{name}_total"]) for name in COUNTERS}


def is_gossip(lab, frame, start, end):
    """An Ethernet frame with a datagram from one agent to the other."""
    return (len(frame) > ETHERNET + IP + UDP and frame[12:14] == b"\x08\x00" and frame[ETHERNET + 9] == IPPROTO_UDP and
            frame[ETHERNET + 12:ETHERNET + 20] == socket.inet_aton(lab.address(start)) + socket.inet_aton(lab.address(end)) and
            struct.unpack("!H", frame[ETHERNET + IP + 2:ETHERNET + IP + 4])[0] == PEER_PORT)


def changed(frame, at, bit):
    """With one bit of the datagram flipped, and no checksum that would tell."""
    made = bytearray(frame)
    made[ETHERNET + IP + UDP + at] ^= 1 << bit
    made[ETHERNET + IP + 6:ETHERNET + IP + 8] = b"\0\0"
    return bytes(made)


def view_of(lab, site):
    return {name: (about["id"], about["state"], about["since"]) for name, about in lab.view(site).items()}


def session_of(frame):
    """The numbers of receiver and sender (docs/protocol/seal.md)."""
    return frame[ETHERNET + IP + UDP + 10:][:16]


class Intruder:
    """Somebody on the way from Site1 to Site2: he sees all that is sent, keeps it back, and sends what he likes."""

    def __init__(self, lab):
        self.lab = lab
        self.wire = lab.socket("Site1", socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.wire.bind(("wan0", 0x0003))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def see(self, count):
        """So many datagrams that Site1 sends to Site2."""
        frames = []
        while len(frames) < count:
            frame = self.wire.recv(2048)
            if is_gossip(self.lab, frame, "Site1", "Site2") and frame[ETHERNET + IP + UDP + 1] == DATA:
                frames.append(frame)
        return frames

    def record(self, count):
        """So many that do not arrive, of the session that the two have afterwards: one that hears nothing for some seconds, as
        on a busy machine, begins a new one."""
        def of_one_session():
            self.lab.cut("Site1", "Site2", one_way=True)
            try:
                frames = self.see(count)
            finally:
                self.lab.heal()
            self.lab.wait_present()
            while select.select([self.wire], [], [], 0)[0]:
                self.wire.recv(2048)  # what was sent meanwhile
            return frames if len({session_of(frame) for frame in frames + self.see(2)}) == 1 else None

        return wait_for(of_one_session, "datagrams of one session")

    def send(self, frames, names, most=64):
        """All of them, not too many at once. Returns once the counters of these names have noticed."""
        for at in range(0, len(frames), most):
            part = frames[at:at + most]
            before = counters(self.lab, "Site2")
            for frame in part:
                self.wire.send(frame)

            def counted():
                after = counters(self.lab, "Site2")
                return sum(after[name] - before[name] for name in names)

            wait_for(lambda: counted() >= len(part), lambda: f"{len(part)} frames to be noticed; {counted()} were")


def test_datagrams_of_others_change_nothing(start):
    lab = start(3)
    # Until all have the keys of all: then there is little else than data.
    wait_for(lambda: all(lab.view(a)[b]["rtt_ms"] is not None for a in lab.sites for b in lab.sites if a != b), "answers")
    with Intruder(lab) as intruder:
        frames = intruder.record(3)
        before, view, since = counters(lab, "Site2"), view_of(lab, "Site2"), len(lab.log("Site2"))
        # One bit is another, anywhere in it: of who sent it, of the session, of the counter, of what is sealed.
        made = [changed(frame, at, at % 8) for frame in frames for at in range(len(frame) - ETHERNET - IP - UDP)]
        intruder.send(made, ("forged", "stale", "strangers", "not_ours", "replayed"))
        after = counters(lab, "Site2")
        assert after["forged"] - before["forged"] > len(made) / 2, (before, after)
        # What arrives late is good, once.
        intruder.send(frames, ("opened",))
        replayed = counters(lab, "Site2")["replayed"]
        intruder.send(frames * 50, ("replayed",))
        assert counters(lab, "Site2")["replayed"] - replayed == 150
        # And what has nothing to do with us.
        with lab.socket("Site3", socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            strange = counters(lab, "Site2")["not_ours"]
            for text in (b"", b"x", b"GET / HTTP/1.1\r\n\r\n", bytes(1300), frames[0][ETHERNET + IP + UDP:][:40]):
                stranger.sendto(text, (lab.address("Site2"), PEER_PORT))
            wait_for(lambda: counters(lab, "Site2")["not_ours"] == strange + 5, "strangers' datagrams to be counted")
    assert view_of(lab, "Site2") == view
    assert not lab.events("Site2", "msg=", since)
    for name in ("malformed", "refused_records"):
        assert counters(lab, "Site2")[name] == before[name]
    # The two still talk, by the same session: nothing had to begin anew.
    opened = counters(lab, "Site2")["opened"]
    wait_for(lambda: counters(lab, "Site2")["opened"] > opened + 5, "what Site1 and Site3 really send")
    assert counters(lab, "Site2")["greetings"] == before["greetings"]
