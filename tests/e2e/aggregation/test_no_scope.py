"""Lists without a scope, at a site that knows of something elsewhere: whatever the services say, its own list comes through."""
import json
import pathlib

import pytest
from demo_process import ask, wait_for

import lists_lab

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "apps" / "sample.yaml"
SITES = ("Site1", "Site2")


class Witness:
    """Site1 is a witness of the image 17 of Site2."""

    def __init__(self, folder):
        text = SAMPLE.read_text(encoding="utf-8")
        described = text.replace("    item: /images/{id}\n", "    item: /images/{id}\n    cross: indivisible\n"
                                 "    paging: {query: [limit], next: /next}\n")
        assert described != text
        (folder / "app.yaml").write_text(described, encoding="utf-8")
        self.lab = lists_lab.Lab(folder, application=str(folder / "app.yaml"), sites=SITES)
        try:
            self.lab.say(Site2=(201, b'{"id": "17", "name": "far"}'))
            made = ask(self.lab.agents["Site1"].url("image") + "/images", "POST", {"Scope": "Site2 % Site1"},
                       json_body={"name": "far"})
            assert made.status == 201, made.bytes
            self.meta_id = made.json["id"]
            self.lab.say(Site2=self.far())
            wait_for(lambda: self.get().names == ["far"], "Site1 to hear of it")
        except BaseException:
            self.lab.stop()
            raise
        for service in self.lab.sites.values():
            service.paths.clear()
            service.seen.clear()

    def far(self, *others, **more):
        return json.dumps({"images": [*others, {"id": "17", "name": "far"}], **more}).encode()

    def get(self, path="/images", method="GET", **headers):
        sock = lists_lab.connect(self.lab.agents["Site1"].url("image"), path,
                                 {name.replace("_", "-"): value for name, value in headers.items()}, method)
        return lists_lab.read(sock, method)

    def say(self, **answers):
        self.lab.say(**answers)

    def asked(self, site):
        return self.lab.sites[site].paths


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    witness = Witness(tmp_path_factory.mktemp("no-scope"))
    yield witness
    witness.lab.stop()


@pytest.fixture
def witness(made):
    made.say(Site1=lists_lab.images("here"), Site2=made.far())
    for service in made.lab.sites.values():
        service.paths.clear()
        service.seen.clear()
    return made


def test_what_is_known_and_nothing_else(witness):
    witness.say(Site1=b'{"count": 1, "images": [ {"id": "17", "name": "of here"} ]}',
                Site2=witness.far({"id": "18", "name": "of there"}, 7, None, [], count=4))
    answer = witness.get()
    assert answer.names == ["of here", "far"], "an id that is equal is another's"
    assert [each["id"] for each in answer.json["images"]] == ["17", witness.meta_id]
    assert answer.json["count"] == 1 and answer.partial is None
    assert b'[ {"id": "17", "name": "of here"},' in answer.body, "no byte of its own list changes"


def test_the_query_goes_along(witness):
    witness.get("/images?name=x&tag=a%20b")
    assert witness.asked("Site1") == witness.asked("Site2") == ["/images?name=x&tag=a%20b"]


def test_a_service_cannot_pass_something_off_as_known(witness):
    forged = {"cheops-replica": witness.meta_id, "id": "18", "name": "forged"}
    witness.say(Site2=witness.far(forged, {**forged, "cheops-replica": witness.meta_id + ";prime"}))
    assert witness.get().names == ["here", "far"]
    witness.say(Site2=witness.far({"id": "17", "name": "once more"}))
    assert witness.get().names == ["here", "once more"], "one resource is shown once, whatever its site says"


@pytest.mark.parametrize("body, reason", [
    (b'{"images": [{"id": "17", "name": "fa', "no-json"),
    (b'<html>', "no-json"),
    (b'{"other": []}', "no-list"),
    (b'{"images": [], "images": []}', "twice"),
    (b'', "no-json"),
    (b'{"images": [' + b'[' * 3000, "no-json"),
])
def test_another_site_talks_nonsense(witness, body, reason):
    witness.say(Site2=body)
    answer = witness.get()
    assert answer.status == 200 and "here" in answer.names
    assert answer.partial.startswith(f'"Site2";reason={reason}'), answer


def test_another_site_refuses(witness):
    witness.say(Site2=(403, b'{"error": "no"}'))
    answer = witness.get()
    assert answer.names == ["here"] and answer.partial == '"Site2";reason=status;status=403'


@pytest.mark.parametrize("status", [301, 401, 404, 500, 503])
def test_what_this_sites_service_refuses_is_the_answer(witness, status):
    witness.say(Site1=(status, {"X-Own": "yes", "Location": "/elsewhere"}, b'{"error": "of this site"}'))
    answer = witness.get()
    assert (answer.status, answer.json, answer.headers["x-own"]) == (status, {"error": "of this site"}, "yes")


def test_something_else_than_a_list(witness):
    """A user may have asked for it."""
    witness.say(Site1=(200, {"Content-Type": "text/csv", "ETag": '"own"'}, b"id;name\n"))
    answer = witness.get(Accept="text/csv")
    assert (answer.status, answer.body, answer.headers["etag"]) == (200, b"id;name\n", '"own"')
    assert answer.partial.startswith('"Site2";reason=no-json')


@pytest.mark.parametrize("body", [b'{"count": 5}', b'{"images": 5}', b'[]', b'"x"', b'{"images": [], "images": []}',
                                  b'{"images": [{"id": "1"}', b'no json', b''])
def test_json_that_is_no_list(witness, body):
    """It passes, as it would have without the others."""
    witness.say(Site1=(200, {"ETag": '"own"'}, body))
    answer = witness.get("/images?summary=1")
    assert (answer.status, answer.headers["etag"], answer.body) == (200, '"own"', body)
    assert answer.partial.startswith('"Site2";reason=')


def test_no_etag_of_one_site(witness):
    witness.say(Site1=(200, {"ETag": '"one"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "X-Own": "yes"},
                       lists_lab.images("here")))
    for method in ("GET", "HEAD"):
        answer = witness.get(method=method, If_None_Match='"one"')
        assert answer.status == 200 and answer.headers["x-own"] == "yes"
        assert "etag" not in answer.headers and "last-modified" not in answer.headers
    assert not any("If-None-Match" in seen for site in SITES for seen in witness.lab.sites[site].seen)
    # What is one site's own has what that site says.
    page = witness.get("/images?limit=1", If_None_Match='"one"')
    assert page.headers["etag"] == '"one"' and page.partial.startswith('"Site2";reason=pages')
    assert witness.lab.sites["Site1"].seen[-1]["If-None-Match"] == '"one"'


def test_pages_of_its_own(witness):
    """As the service has them; what lies elsewhere is on the first one."""
    witness.say(Site1=lists_lab.images("here", next="/images?limit=1&marker=x"))
    answer = witness.get()
    assert answer.names == ["here", "far"] and answer.json["next"] and answer.partial is None
    witness.say(Site2=witness.far(next="/images?limit=1&marker=x"))
    assert witness.get().partial == '"Site2";reason=more-pages'


def test_a_long_list_streams(witness):
    """And a site that fails in the middle of it leaves what is whole."""
    pad = "x" * 500
    witness.say(Site1=lists_lab.images(*[f"{number} {pad}" for number in range(500)]),
                Site2=json.dumps({"images": [{"id": "17", "name": "far"}] +
                                  [{"id": f"o{number}", "name": pad} for number in range(500)]}).encode()[:-1000])
    answer = witness.get(TE="trailers")
    assert len(answer.names) == 501 and answer.names[-1] == "far"
    assert "Site2" in answer.trailers["cheops-partial"]


def test_types_of_which_nothing_is_elsewhere(witness):
    """Nobody else is asked."""
    witness.say(Site1=(200, {"ETag": '"one"'}, b'{"secrets": []}'))
    answer = witness.get("/secrets")
    assert answer.headers["etag"] == '"one"' and answer.partial is None
    assert witness.asked("Site2") == []


def test_it_is_deleted(tmp_path):
    witness = Witness(tmp_path)
    try:
        witness.say(Site1=lists_lab.images("here"), Site2=(204, b""))
        url = witness.lab.agents["Site1"].url("image")
        assert ask(f"{url}/images/{witness.meta_id}", "DELETE").status == 204
        # Its service has gone mad, and shows it all the same.
        witness.say(Site2=witness.far())
        wait_for(lambda: witness.get().names == ["here"], "it to be gone")
        # And once all have heard of it, nobody is asked any more.
        def asks_nobody():
            witness.asked("Site2").clear()
            return witness.get().names == ["here"] and witness.asked("Site2") == []
        wait_for(asks_nobody, "Site2 not to be asked any more")
    finally:
        witness.lab.stop()
