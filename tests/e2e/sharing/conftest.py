"""Fixtures of the tests of sharing: demos with each way of carrying a scope, images in them, and a mesh of one's own."""
import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "demo"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sample"))

import demo_process  # noqa: E402
import mesh as mesh_of_ours  # noqa: E402

# mode of the demo, and what a client has to send so that there is something that the service forwards
MODES = ["headers", "baggage", "trace", "request-id", "header=X-Auth-Token"]


class Sites:
    """A demo of three sites with an image at each that is nowhere else."""

    def __init__(self, demo):
        self.demo = demo
        self.images = {}
        for site in demo.sites:
            url = demo.url(site, "image") + "/images"
            image = demo_process.ask(url, "POST", json_body={"name": f"only at {site}"}).json["id"]
            made = demo_process.ask(f"{url}/{image}/file", "PUT", body=f"the bytes of {site}'s image".encode())
            self.images[site] = made.json

    def __getattr__(self, name):
        return getattr(self.demo, name)

    def image_id(self, site):
        return self.images[site]["id"]

    def boot(self, at, image_of, headers=None, path="/servers"):
        """Asks compute for a server with the image that exists only at image_of."""
        return demo_process.ask(self.url(at, "compute") + path, "POST", headers,
                                json_body={"name": "vm", "image": self.image_id(image_of)})

    def via(self, at="Site1", **headers):
        """(site of compute, site of the image service that it reaches)"""
        answer = demo_process.ask(self.url(at, "compute") + "/whoami?via=image", headers=headers)
        assert answer.status == 200, answer
        return answer.json["site"], answer.json["via"]["site"]


@pytest.fixture(scope="session")
def demos(tmp_path_factory):
    """demos(mode): the demo of three sites in that mode; None: the default. Each is started once, and kept."""
    with contextlib.ExitStack() as stops:
        made = {}

        def find(mode=None):
            if mode not in made:
                demo = demo_process.Demo(tmp_path_factory.mktemp("sharing") / "demo", *(["--forward", mode] if mode else []))
                stops.callback(demo.stop)
                made[mode] = Sites(demo)
            return made[mode]

        yield find


@pytest.fixture
def sites(demos):
    return demos(None)


@pytest.fixture(params=MODES)
def carrying(request, demos):
    """The demo in each mode in which a scope follows; `.mode` says which."""
    made = demos(request.param)
    made.mode = request.param
    return made


@pytest.fixture
def mesh(tmp_path):
    """Agents and services with a configuration of the test's own."""
    with contextlib.ExitStack() as stops:
        made = mesh_of_ours.Mesh(tmp_path)
        stops.callback(made.stop)
        yield made
