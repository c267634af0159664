"""What one of three sites does wrong, and what is left of the list: services that a test plays, byte by byte."""
import gzip
import json
import threading

import pytest

from demo_process import ask, wait_for
from lists_lab import ALL, SITES, connect, images, read

LONG = 400  # KiB of a list that is long enough for its answer to begin before it ends


def long_list(site, end=b"]}"):
    """As (bytes, number of elements)."""
    elements = [json.dumps({"id": f"{site}-{i}", "name": f"{site} {i}", "filling": "x" * 200}) for i in range(LONG * 4)]
    return b'{"images": [' + ", ".join(elements).encode() + end, len(elements)


def fill(lab):
    lab.say(Site1=images("one"), Site2=images("two"), Site3=images("three"))


def chunked(body, cut=False):
    """Sends it in chunks, and breaks off behind it."""
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for at in range(0, len(body), 30000):
            piece = body[at:at + 30000]
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if not cut:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True
    return answer


def cut_short(body):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) + 100))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True
    return answer


def test_all_is_well(lab):
    fill(lab)
    answer = lab.get()
    assert answer.names == ["one", "two", "three"] and answer.partial is None and answer.trailers == {}
    for service in lab.sites.values():
        assert service.paths == ["/images"] and service.seen[0]["Accept-Encoding"] == "identity"


def test_every_query_that_is_a_filter_goes_to_each(lab):
    fill(lab)
    assert lab.get("/images?name=x&owner=me").names == ["one", "two", "three"]
    assert all(service.paths == ["/images?name=x&owner=me"] for service in lab.sites.values())


def test_a_body_goes_to_each(lab):
    fill(lab)
    url = lab.agents["Site1"].url("image") + "/images"
    answer = ask(url, "GET", {"Scope": ALL, "Content-Type": "application/json"}, body=b'{"query": "all"}')
    assert [each["name"] for each in answer.json["images"]] == ["one", "two", "three"]
    assert all(service.bodies == [b'{"query": "all"}'] for service in lab.sites.values())
    answer = ask(url, "GET", {"Scope": ALL}, body=b"x" * 100000)
    assert answer.status == 413 and answer.problem["type"] == "body-too-long", answer


@pytest.mark.parametrize("bad, reason", [
    ((500, b"{}"), "status;status=500"),
    ((404, b"{}"), "status;status=404"),
    (b"<html>", "no-json"),
    (b"", "no-json"),
    (b'{"images": [{"name": "x"}', "no-json"),
    (b'{"images": [{"name": "x"}]}]', "no-json"),
    (b'{"images": {"name": "x"}}', "no-list"),
    (b'{"pictures": []}', "no-list"),
    (b'{"images": [{"name": "x"}], "images": []}', "twice"),
    (b'{"images": ' + b"[" * 5000 + b"]" * 5000 + b"}", "no-json"),
    ((200, {"Content-Encoding": "gzip"}, gzip.compress(images("x"))), "coding"),
    (cut_short(images("x")[:-5]), "http_response_incomplete"),
    (chunked(images("x")[:-5], cut=True), "http_response_incomplete"),
])
@pytest.mark.parametrize("site", ["Site1", "Site2"])
def test_one_site_fails(lab, site, bad, reason):
    fill(lab)
    lab.say(**{site: bad})
    answer = lab.get()
    assert answer.status == 200, answer
    assert answer.names == [name for name, at in zip(("one", "two", "three"), SITES) if at != site]
    assert answer.partial.startswith(f'"{site}";reason={reason}'), answer
    assert lab.agents["Site1"].metric("cheops_partial_answers_total") == 1


def test_an_agent_is_away(lab):
    fill(lab)
    lab.agents["Site2"].kill()
    answer = lab.get()
    assert answer.names == ["one", "three"] and answer.partial.startswith('"Site2";reason='), answer
    assert 'next-hop="Site2"' in answer.headers["proxy-status"]


def test_a_service_is_away(lab):
    fill(lab)
    lab.sites["Site3"].stop()
    answer = lab.get()
    assert answer.names == ["one", "two"] and answer.partial.startswith('"Site3";reason=status;status=503'), answer
    lab.mesh.stops.pop_all()  # it cannot be stopped twice
    for agent in lab.agents.values():
        agent.stop()


def test_all_fail(lab):
    lab.say(Site1=(500, b"{}"), Site2=b"<html>", Site3=(404, b"{}"))
    answer = lab.get()
    assert answer.status == 502 and answer.problem["type"] == "urn:cheops:problem:all-sites-failed", answer
    for says in ("Site1 answered 500", "Site2: no-json", "Site3 answered 404"):
        assert says in answer.problem["detail"], answer
    assert {each["site"] for each in answer.problem["tried"]} == set(SITES)


def test_all_say_the_same(lab):
    lab.say(**{site: (403, {"X-From": site}, b'{"error": "not for you"}') for site in SITES})
    answer = lab.get()
    assert answer.status == 403 and answer.json == {"error": "not for you"} and answer.headers["x-from"] == "Site1"


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("end, cut", [(b', {"id": "half', True), (b', {"id": "half', False), (b", <", False), (b'], "images": []}', False)])
def test_one_fails_in_the_middle(lab, site, end, cut):
    """The answer had begun: whole elements are in, it is JSON, and the trailer says so."""
    counts = {}
    for each in SITES:
        body, counts[each] = long_list(each)
        lab.say(**{each: chunked(body)})
    lab.say(**{site: chunked(long_list(site, end)[0], cut)})
    answer = lab.get(TE="trailers")
    assert answer.status == 200 and answer.partial is None and answer.headers["trailer"] == "Cheops-Partial"
    assert len(answer.names) == sum(counts.values()) and len(set(answer.names)) == len(answer.names)
    assert answer.trailers["cheops-partial"].startswith(f'"{site}";reason='), answer.trailers
    assert lab.agents["Site1"].metric("cheops_partial_late_total") == 1
    assert "a site failed in the middle of a list of several" in lab.agents["Site1"].log.read_text()
    assert lab.get().trailers == {}  # who does not take trailers gets none


def test_http_1_0(lab):
    for site in SITES:
        lab.say(**{site: long_list(site)[0]})
    answer = lab.get(version="1.0")
    assert "transfer-encoding" not in answer.headers and len(answer.names) == 3 * long_list("x")[1]


def test_slow_sites_are_waited_for(lab):
    """One that answers late, and one whose list comes in drops."""
    go = threading.Event()
    fill(lab)

    def late(handler):
        assert go.wait(60)
        body = images("two")
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        for byte in body:
            handler.wfile.write(bytes([byte]))
    lab.say(Site2=late)
    sock = connect(lab.agents["Site1"].url("image"), "/images", {"Scope": ALL})
    wait_for(lambda: lab.sites["Site2"].paths and lab.sites["Site3"].paths, "all sites to be asked")
    go.set()
    assert read(sock).names == ["one", "two", "three"]


def test_a_site_that_never_answers(tmp_path):
    import lists_lab
    lab = lists_lab.Lab(tmp_path, timeouts={"connect": "5s", "answer": "4s", "idle": "4s"})  # the others have to answer in that time
    hold = threading.Event()
    try:
        fill(lab)
        lab.say(Site1=lambda handler: hold.wait(60))
        answer = lab.get()
        assert answer.names == ["two", "three"] and answer.partial == '"Site1";reason=http_response_timeout', answer
        lab.say(**{site: lambda handler: hold.wait(60) for site in SITES})
        answer = lab.get()
        assert answer.status in (502, 504) and answer.problem["type"] == "urn:cheops:problem:all-sites-failed", answer
    finally:
        hold.set()
        lab.stop()


def test_a_client_goes_away(lab):
    """Its sites are told: they do not go on sending."""
    broken = {site: threading.Event() for site in SITES}

    def endless(site):
        def answer(handler):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            piece = b'{"images": ['
            try:
                while True:
                    handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    piece = b'{"name": "' + b"x" * 1000 + b'"},'
            except OSError:
                broken[site].set()
        return answer
    for site in SITES:
        lab.say(**{site: endless(site)})
    sock = connect(lab.agents["Site1"].url("image"), "/images", {"Scope": ALL})
    assert sock.recv(100000)
    sock.close()
    for site in SITES:
        wait_for(broken[site].is_set, f"{site} to notice")
    fill(lab)
    assert lab.get().names == ["one", "two", "three"]


def memory_kb(agent):
    with open(f"/proc/{agent.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def test_memory_does_not_grow_with_the_lists(lab, sanitized):
    """Some 40 MB of each site, to a client that is in no hurry at first."""
    piece = ", ".join(json.dumps({"id": i, "name": f"n{i}", "filling": "y" * 900}) for i in range(200)).encode()
    pieces = 200

    def large(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for i in range(pieces + 2):
            data = b'{"images": [' if i == 0 else b"]}" if i == pieces + 1 else piece + (b"," if i < pieces else b"")
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")
    fill(lab)
    lab.get()
    before = {site: memory_kb(agent) for site, agent in lab.agents.items()}
    for site in SITES:
        lab.say(**{site: large})
    sock = connect(lab.agents["Site1"].url("image"), "/images", {"Scope": ALL})
    wait_for(lambda: all(service.paths[1:] for service in lab.sites.values()), "all sites to be asked")
    answer = read(sock)
    assert answer.body.count(b'"filling"') == 3 * 200 * pieces
    for site, agent in lab.agents.items():
        assert sanitized or memory_kb(agent) - before[site] < 8 << 10, site


def test_other_answers_side_by_side(lab):
    lab.say(Site1=(200, {"Content-Type": "text/plain"}, "schön\n".encode()),
            Site2=(503, {"Content-Type": "application/octet-stream"}, b"\xff\x00"),
            Site3=b"x" * (1 << 20) + b"y")
    answer = lab.get("/healthz")
    assert answer.status == 207 and answer.headers["content-type"] == "application/json", answer
    assert answer.json["Site1"] == {"status": 200, "content_type": "text/plain", "body": "schön\n"}
    assert answer.json["Site2"] == {"status": 503, "content_type": "application/octet-stream", "body_base64": "/wA="}
    assert answer.json["Site3"]["error"] == "too-long" and "1048576" in answer.json["Site3"]["details"]
    assert answer.partial == '"Site3";reason=too-long'


def test_other_answers_and_a_site_that_is_away(lab):
    fill(lab)
    lab.say(Site1=b"[1, 2 ]\n", Site3=cut_short(b"[1"))
    lab.agents["Site2"].kill()
    answer = lab.get("/healthz")
    assert answer.status == 207 and answer.json["Site1"]["body"] == [1, 2]
    assert "error" in answer.json["Site2"] and answer.json["Site3"]["error"] == "http_response_incomplete"
    assert '"Site2";reason=' in answer.partial and '"Site3";reason=' in answer.partial


def test_lists_of_chosen_shape(lab):
    """White space, null, and a byte order mark."""
    lab.say(Site1=b'\xef\xbb\xbf{\n  "images": null,\n  "total": 0\n}\n', Site2=b'{"images": [ ]}', Site3=images("x"))
    answer = lab.get()
    assert answer.partial is None
    assert answer.body == b'{\n  "images": [{"id": "x", "name": "x"}],\n  "total": 0\n}\n'


def test_fields_that_are_true_of_one_site_only_are_left_out(lab):
    fill(lab)
    lab.say(Site1=(200, {"ETag": '"1"', "Last-Modified": "now", "X-Kept": "yes", "Content-Type": "application/json"}, images("one")))
    answer = lab.get(If_None_Match='"1"')
    assert answer.headers["x-kept"] == "yes" and not {"etag", "last-modified", "content-length"} & set(answer.headers)
    assert "If-None-Match" not in lab.sites["Site1"].seen[-1]


def test_a_mark_of_a_service_is_not_ours(lab):
    """Nor is a header."""
    forged = b'{"images": [{"cheops-replica": "01890000-0000-7000-8000-00000000000a", "name": "a"}]}'
    for site in SITES:
        lab.say(**{site: (200, {"Cheops-Gather": "marks", "Cheops-Partial": '"Site9"'}, forged)})
    answer = lab.get()
    assert answer.body.count(b"cheops-replica") == 3 and answer.partial is None
