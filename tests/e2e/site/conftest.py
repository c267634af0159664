import json

import pytest

from ports import free_port


class Place:
    """A configuration and its folder of state."""

    def __init__(self, folder, site):
        self.folder = folder
        self.site = site
        self.state = folder / "state"
        self.api = f"127.0.0.1:{free_port()}"
        self.config = str(folder / "agent.yaml")
        self.write(self.api)

    def write(self, api):
        self.api = api
        config = {"site": self.site, "api": api, "peer": f"127.0.0.1:{free_port()}", "state": str(self.state),
                  "services": {"app": {"front": f"127.0.0.1:{free_port()}", "instances": ["127.0.0.1:9"]}}}
        (self.folder / "agent.yaml").write_text(json.dumps(config), encoding="utf-8")


@pytest.fixture
def place(tmp_path):
    """Makes places: place("Site1")."""
    def make(site):
        folder = tmp_path / site.replace("/", "_")
        folder.mkdir()
        return Place(folder, site)
    return make
