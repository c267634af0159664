"""The demo as a user runs it: it starts, says what there is, and leaves nothing behind."""
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import stat
import subprocess

import demo_process
import pytest
from demo_process import BOUND_S, SERVICES, ask, children_of, free_base, is_running, wait_for
from ports import is_free
from processes import hold

# ---- it starts --------------------------------------------------------------------------------------------------------


def test_one_line_of_json_says_where_everything_is(start):
    demo = start()
    assert demo.first.endswith("]}\n") and demo.first.count("\n") == 1
    made = json.loads(demo.first)
    assert list(made) == ["sites"] and [site["name"] for site in made["sites"]] == ["Site1", "Site2", "Site3"]
    for site in made["sites"]:
        assert list(site) == ["name", "api", "services"] and list(site["services"]) == list(SERVICES)
        assert ask(site["api"] + "/cheops/v1/health").json == {"status": "ok", "site": site["name"]}
        for service, url in site["services"].items():
            assert ask(url + "/whoami").json == {"service": service, "site": site["name"]}
    demo.stop()
    assert demo.rest == "" and demo.stderr() == ""


@pytest.mark.parametrize("sites", [1, 5])
def test_number_of_sites(start, sites):
    demo = start(sites=sites)
    assert list(demo.sites) == [f"Site{n}" for n in range(1, sites + 1)]
    last = f"Site{sites}"
    answer = ask(demo.url("Site1", "compute") + "/whoami?via=image", headers={"Scope": f"image: {last}"})
    assert answer.json["via"]["site"] == last
    assert len(demo.children) == 4 * sites


def test_ports_are_those_of_the_documentation(start, root):
    demo = start(sites=2)
    for number, site in enumerate(demo.sites.values()):
        ports = [int(url.rpartition(":")[2]) for url in (site["api"], *site["services"].values())]
        assert ports == [demo.base + 100 * number + port for port in (0, 1, 2, 3)]
    assert "8100" in (root / "docs/demo.md").read_text()


def test_environment_of_the_user_moves_nothing(start):
    demo = start(sites=1, env={"CHEOPS_API": "127.0.0.1:1", "CHEOPS_STATE": "/nowhere", "CHEOPS_SITE": "Elsewhere", "CHEOPS_LOG": "nonsense",
                               "FORWARD": "none", "SITE_NAME": "Elsewhere", "http_proxy": "http://127.0.0.1:1",
                               "NOTIFY_SOCKET": "/nowhere"})
    answer = ask(demo.url("Site1", "compute") + "/whoami?via=image")
    assert answer.json == {"service": "compute", "site": "Site1", "via": {"service": "image", "site": "Site1"}}


def test_sites_know_each_other_by_certificate(start):
    """They joined as an operator would have it: Site1 has the authority, and each has a key of its own."""
    demo = start()
    keys = set()
    for site in demo.sites:
        key = demo.state(site) / "site.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        keys.add(key.read_text())
        seen = ask(demo.sites[site]["api"] + "/cheops/v1/sites").json["sites"]
        assert {entry["name"]: (entry["shown"], entry["authority"]) for entry in seen} == {
            "Site1": ("present", True), "Site2": ("present", False), "Site3": ("present", False)}
    assert len(keys) == 3 and (demo.state("Site1") / "root.key").exists()
    assert not (demo.state("Site2") / "root.key").exists()


# ---- the guide --------------------------------------------------------------------------------------------------------


def run_guide(text):
    """What the guide's commands print, run as a user would: one shell, everything pasted."""
    run = subprocess.run(["bash"], input=text, capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert run.returncode == 0 and run.stderr == "", run
    return [json.loads(line) if line.startswith("{") else line for line in run.stdout.splitlines() if line]


def test_guide_works_by_copy_and_paste(start):
    demo = start(json_line=False)
    commands = re.findall(r"^# .+\n(?:\w+=|curl )", demo.first, re.MULTILINE)
    assert len(commands) == 31, demo.first  # each has its line of explanation
    answers = run_guide(demo.first)
    local, image, record, *servers, none, third, via, mistake, plan, owned, pool, grown, read = answers[:18]
    assert (local["site"], local["via"]["site"]) == ("Site1", "Site1")
    assert record["id"] == image and record["status"] == "active"
    assert len(servers) == 6 and len({server["id"] for server in servers}) == 6
    assert all(server["image_checksum"] == record["checksum"] and server["status"] == "ACTIVE" for server in servers)
    assert none == {"error": {"code": 400, "message": f"no image {image}"}}
    assert (third["site"], third["via"]["site"]) == ("Site3", "Site3")
    assert (via["site"], via["via"]["site"]) == ("Site1", "Site2")
    assert mistake["status"] == 400 and "did you mean `Site1`?" in mistake["detail"]
    assert plan["plan"] == {"op": "one", "site": "Site1"}
    assert "expects Site1/network, but the scope gives Site2/network" in owned["detail"]
    assert (grown["id"], grown["size"], read["size"]) == (pool, 29, 29)

    image, secret, vm, changed, rebooted, of_site2, missing, brought = answers[18:26]
    assert changed["id"] == secret and (rebooted["id"], rebooted["secret"], rebooted["image"]) == (vm, secret, image)
    read = hashlib.sha256(b"new").hexdigest()
    assert (of_site2["id"], of_site2["secret_checksum"], rebooted["secret_checksum"]) == (vm, read, read)
    assert missing["type"].endswith(":requirement-absent") and "Site3" in missing["detail"]
    assert brought.get("image") == image and brought["status"] == "ACTIVE", brought
    assert answers[26].lower().startswith("warning: 299 - ") and f"compute.server {vm} relies on it" in answers[26]
    stack, *stacks, larger, apart = answers[27:32]
    assert {each["id"] for each in (*stacks, larger)} == {stack} and [len(each["servers"]) for each in stacks] == [3, 3]
    assert not set(stacks[0]["servers"]) & set(stacks[1]["servers"]) and len(larger["servers"]) == 4
    assert {site: len(each["body"]["servers"]) for site, each in apart.items()} == {"Site1": 4, "Site2": 4}
    assert {each["body"]["id"] for each in apart.values()} == {stack}
    project, volume, listed, refused = answers[32:36]
    assert volume["project"] == project and [each["id"] for each in listed["volumes"]] == [volume["id"]]
    assert refused["error"]["code"] == 409 and "has the name data" in refused["error"]["message"]
    images, spanning, larger, read = answers[36:40]
    assert {each["cheops-site"] for each in images["images"]} == {"Site1", "Site2"}
    assert [each["id"] for each in images["images"]].count(image) == 1
    assert [(each["id"], each["size"]) for each in (larger, read)] == [(spanning, 6)] * 2
    divided, whole, part, grown, again = answers[40:45]
    assert [each["id"] for each in (whole, part, grown, again)] == [divided] * 4
    assert (whole["size"], part["size"], again["size"]) == (9, 3, 19)
    shop, made, listed, taken = answers[45:]
    assert [each["id"] for each in listed["volumes"]] == [made["id"]] and made["project"] == shop
    assert taken["type"].endswith(":name-taken") and "Site2" in taken["detail"]
    at_site1 = ask(f"http://127.0.0.1:{demo.base + 1}/servers").json["servers"]
    assert {server["id"] for server in at_site1 if "stack" not in server} == {vm, brought["id"],
                                                                                           *(server["id"] for server in servers)}


@pytest.mark.parametrize("sites, answers", [(1, 3), (2, 46)])
def test_guide_names_no_site_that_is_not_there(start, sites, answers):
    demo = start(sites=sites, json_line=False)
    assert f"Site{sites + 1}" not in demo.first
    assert len(run_guide(demo.first)) == answers
    assert f"{sites} site{'s' * (sites > 1)} on this machine" in demo.first


# ---- it stops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_everything(start, number):
    demo = start(sites=2)
    assert len(demo.children) == 8
    demo.stop(number)  # and sees that the processes are gone
    for site in demo.sites.values():
        for url in (site["api"], *site["services"].values()):
            assert is_free(int(url.rpartition(":")[2]))
    assert demo.stderr() == ""


def test_control_c_in_a_terminal_reaches_the_demo_alone(start):
    demo = start(sites=2)
    os.killpg(demo.process.pid, signal.SIGINT)
    assert demo.ended() == 0 and demo.stderr() == ""


def test_requests_under_way_are_finished(start):
    demo = start(sites=2)
    body = b"x" * (1 << 16)
    image = ask(demo.url("Site2", "image") + "/images", "POST", json_body={"name": "slow"}).json["id"]
    with socket.create_connection(("127.0.0.1", demo.base + 2), timeout=BOUND_S) as client:
        client.sendall(f"PUT /images/{image}/file HTTP/1.1\r\nHost: x\r\nScope: image: Site2\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:1000])
        wait_for(lambda: demo.metric("Site2", "cheops_peer_requests_total") == 1, "the request at Site2")
        demo.process.send_signal(signal.SIGTERM)
        wait_for(lambda: is_free(demo.base), "the agent to take no more")
        client.sendall(body[1000:])
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert demo.ended() == 0


def test_killed_demo_leaves_no_process(start):
    demo = start(sites=2)
    demo.process.kill()
    assert demo.ended() == -signal.SIGKILL


def test_second_signal_does_not_wait(start):
    """A service that hangs is killed after a while, or at once when the user asks again."""
    demo = start(sites=1)
    hold(demo.pid_of("Site1", "image"))
    demo.process.send_signal(signal.SIGTERM)
    wait_for(lambda: not is_running(demo.pid_of("Site1", "agent")), "the end of the agent")
    demo.process.send_signal(signal.SIGTERM)
    assert demo.ended() == 0


def test_hanging_service_is_killed(start):
    demo = start(sites=1)
    hold(demo.pid_of("Site1", "compute"))
    demo.stop()


@pytest.mark.parametrize("part", ["image", "agent"])
def test_process_that_dies_is_named_and_all_is_stopped(start, part):
    demo = start(sites=2)
    os.kill(demo.pid_of("Site2", part), signal.SIGKILL)
    assert demo.ended() == 1
    said = demo.stderr()
    assert f"cheops: {part} of Site2 was ended by signal 9 (Killed)" in said
    assert f"/Site2/{part}.log:\n  " in said  # what it said last
    assert re.findall(r"^cheops: .*Site1.*", said, re.MULTILINE) == []


def test_process_that_ends_at_the_start_is_named(tmp_path, cheops):
    false = tmp_path / "cheops-sample"
    false.write_text("#!/bin/sh\necho the reason for it >&2\nexit 3\n")
    false.chmod(0o755)
    result = cheops("demo", "--sites", "1", "--base-port", str(free_base(1)), "--sample", str(false))
    assert result.status == 1 and result.out == ""
    assert re.search(r"(compute|image|network) of Site1 ended by itself, with exit status 3\n", result.err)
    assert "\n  the reason for it\n" in result.err


def test_output_that_cannot_be_written(cheops, tmp_path):
    with open("/dev/full", "wb") as full:
        result = cheops("demo", "--sites", "1", "--base-port", str(free_base(1)), "--dir", str(tmp_path), "--json",
                        stdout=full)
    assert result.status == 1 and "cannot write to the standard output" in result.err


# ---- folders ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def plain_demo(cheops, tmp_path, *arguments):
    """One without --dir. Its temporary folder is made below tmp_path."""
    process = subprocess.Popen([cheops.path, "demo", "--sites", "1", "--base-port", str(free_base(1)), "--json", *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=demo_process.environment({"TMPDIR": str(tmp_path)}))
    try:
        assert process.stdout.readline().startswith('{"sites":')
        yield process
        process.terminate()
        assert process.wait(BOUND_S) == 0
    finally:
        process.kill()
        process.wait(BOUND_S)
        process.stdout.close()
        process.stderr.close()


def test_temporary_folder_is_removed(cheops, tmp_path):
    with plain_demo(cheops, tmp_path):
        [folder] = tmp_path.iterdir()
        assert folder.name.startswith("cheops-demo-") and (folder / "Site1" / "agent.yaml").exists()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(tmp_path.iterdir())


def test_temporary_folder_can_be_kept(cheops, tmp_path):
    with plain_demo(cheops, tmp_path, "--keep") as process:
        [folder] = tmp_path.iterdir()
        process.terminate()
        assert process.stderr.readline() == f"cheops: state and logs are kept in {folder}\n"
    assert (folder / "Site1" / "compute.log").exists()


def test_state_survives_a_restart(start):
    first = start(folder="deep/below/demo")
    image = ask(first.url("Site2", "image") + "/images", "POST", json_body={"name": "kept"}).json
    key = (first.state("Site2") / "site.key").read_text()
    first.stop()
    second = start(folder="deep/below/demo", base=first.base)
    assert (second.state("Site2") / "site.key").read_text() == key
    second.stop()
    third = start(folder="deep/below/demo", base=next(base for base in iter(free_base, None) if base != first.base))
    assert ask(third.url("Site2", "image") + "/images").json == {"images": [image]}
    answer = ask(third.url("Site1", "image") + "/images/" + image["id"], headers={"Scope": "Site2"})
    assert answer.json == image  # all have moved at once: they have joined anew


def test_folder_that_cannot_be_made(cheops, tmp_path):
    (tmp_path / "file").write_text("")
    result = cheops("demo", "--dir", str(tmp_path / "file" / "demo"), "--base-port", str(free_base()))
    assert result.status == 1 and "cannot make " in result.err and "Not a directory" in result.err


# ---- ports, and others who use them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("offset, what", [(0, "the API"), (1, "compute"), (4, "the agent's port for other agents"),
                                          (102, "image"), (113, "a service")])
def test_taken_port_is_named_before_anything_starts(cheops, tmp_path, offset, what):
    base = free_base(2)
    with socket.create_server(("127.0.0.1", base + offset)):
        result = cheops("demo", "--sites", "2", "--base-port", str(base), "--dir", str(tmp_path / "demo"))
    assert result.status == 1 and result.out == ""
    site = offset // 100 + 1
    match = re.fullmatch(rf"cheops: port {base + offset} \({re.escape(what)} at Site{site}\) is taken; choose other ports, "
                         r"for example with --base-port (\d+)\n", result.err)
    assert match and int(match.group(1)) != base, result
    assert not (tmp_path / "demo").exists()


def test_port_that_is_taken_for_udp_only(cheops, tmp_path):
    base = free_base(2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", base + 104))
        result = cheops("demo", "--sites", "2", "--base-port", str(base), "--dir", str(tmp_path / "demo"))
    assert result.status == 1 and f"port {base + 104} (the agent's port for other agents at Site2) is taken" in result.err


def test_two_demos_do_not_disturb_each_other(start):
    first = start(folder="first")
    second = start(folder="second")
    image = ask(first.url("Site2", "image") + "/images", "POST", json_body={"name": "first"}).json
    assert ask(second.url("Site2", "image") + "/images").json == {"images": []}
    scoped = {"Scope": "Site2"}
    assert ask(second.url("Site1", "image") + "/images", headers=scoped).json == {"images": []}
    second.stop()
    assert ask(first.url("Site1", "image") + "/images", headers=scoped).json == {"images": [image]}
    assert len(children_of(first.process.pid)) == 12


def test_second_demo_in_the_same_folder_is_refused(start, cheops):
    demo = start(sites=1)
    result = cheops("demo", "--sites", "1", "--base-port", str(free_base(1)), "--dir", str(demo.folder))
    assert result.status == 1
    assert result.err == f"cheops: another demo uses {demo.folder}; choose another folder with --dir\n" \
        or "…" in result.err  # a long path is cut
    assert ask(demo.url("Site1", "compute") + "/whoami").status == 200


# ---- usage ------------------------------------------------------------------------------------------------------------


def test_help(cheops):
    result = cheops("demo", "--help")
    assert result.status == 0 and result.err == "" and result.out.startswith("Starts sites on this machine")
    for option in ("--sites N", "--base-port P", "--dir DIR", "--keep", "--forward MODE", "--sample PATH", "--json", "--no-ui"):
        assert option in result.out
    assert max(map(len, result.out.splitlines())) <= 100
    assert cheops("help", "demo").out == result.out and "  demo " in cheops("--help").out


@pytest.mark.parametrize("arguments, said", [
    (["--sites", "0"], "--sites is `0`; there has to be at least one"),
    (["--sites", "21"], "--sites is `21`; it has to be a whole number of at most 20"),
    (["--sites", "-1"], "--sites is `-1`; it has to be a whole number of at most 20"),
    (["--sites", "3x"], "--sites is `3x`; it has to be a whole number of at most 20"),
    (["--sites", ""], "--sites is ``; it has to be a whole number of at most 20"),
    (["--sites", "99999999999999999999"], "--sites is `99999999999999999999`; it has to be"),
    (["--base-port", "80"], "--base-port is `80`; with 3 sites it has to be from 1024 to 65322"),
    (["--base-port", "65500"], "--base-port is `65500`; with 3 sites it has to be from 1024 to 65322"),
    (["--base-port", "65536"], "--base-port is `65536`; it has to be a whole number of at most 65535"),
    (["--sites", "1", "--base-port", "65523"], "with 1 site it has to be from 1024 to 65522"),
    (["--dir", ""], "--dir is empty; it has to be a path"),
    (["--sample", ""], "--sample is empty; it has to be a path"),
    (["--forward", "all"], "--forward is `all`; accepted are headers, baggage, trace, request-id, header=X-Auth-Token and none"),
    (["--site", "1"], "no option `--site`; did you mean `--sites`?"),
    (["Site1"], "what is `Site1`? The demo takes options only"),
    (["--json=yes"], "`--json` takes no value"),
])
def test_wrong_usage(cheops, arguments, said):
    result = cheops("demo", *arguments)
    assert result.status == 2 and result.out == ""
    assert result.err.startswith("cheops: ") and said in result.err and result.err.endswith("Try `cheops demo --help`.\n")


def test_sample_application_is_looked_for(cheops, tmp_path):
    for given in (tmp_path, tmp_path / "nothing"):
        result = cheops("demo", "--sample", str(given))
        assert result.status == 1 and result.err.endswith("which is not a program\n")
    (tmp_path / "cheops").write_bytes(open(cheops.path, "rb").read())
    (tmp_path / "cheops").chmod(0o755)
    run = subprocess.run([tmp_path / "cheops", "demo"], env=demo_process.environment({"PATH": "/nowhere"}),
                         capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert run.returncode == 1 and "cheops-sample, is neither in" in run.stderr and "give its path with --sample" in run.stderr


def test_manual_page_and_completion_have_every_option(cheops, root):
    options = re.findall(r"(?<= )--[a-z-]+", cheops("demo", "--help").out.split("Options:")[1].split("\n\n")[0])
    page = (root / "packaging/man/cheops-demo.1").read_text().replace("\\-", "-")
    completion = (root / "packaging/completions/cheops.bash").read_text()
    document = (root / "docs/demo.md").read_text()
    for option in options:
        assert option in page and option in completion
        assert option == "--help" or f"| `{option}` |" in document
    assert len(options) == 9


def test_make_demo_runs_it(root):
    run = subprocess.run(["make", "--no-print-directory", "-n", "demo"], cwd=root, capture_output=True, text=True, timeout=BOUND_S, check=True)
    assert run.stdout.splitlines()[-1].endswith("build/cheops demo")
