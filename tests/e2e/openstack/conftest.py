"""Fixtures of the tests with OpenStack, their order, and what is shown of one that fails."""
import pathlib

import openstack_lab
import pytest

HERE = pathlib.Path(__file__).parent
# One lab serves all. What is replicated is seen by the ids of Cheops from then on, so what compares answers with those of OpenStack alone
# comes before anything is. What leaves things behind comes late, and what has Nova configured anew last.
FIRST, LAST = ["test_lab", "test_sharing"], ["test_kills", "test_by_osprofiler"]


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.stem
        return 2 + LAST.index(name) if name in LAST else name not in FIRST

    here = [at for at, item in enumerate(items) if item.path.parent == HERE]
    for at, item in zip(here, sorted((items[at] for at in here), key=place)):
        items[at] = item


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """With a test that fails is shown what agents and services have logged meanwhile."""
    report = (yield).get_result()
    lab = item.funcargs.get("sites")
    if lab is not None and report.failed:
        report.sections += lab.logged_since_mark()


@pytest.fixture(scope="session")
def sites():
    with openstack_lab.Lab() as lab:
        yield lab


@pytest.fixture
def lab(sites):
    """Two sites that see each other, without servers."""
    sites.mark_logs()
    yield sites
    sites.heal()
    sites.wait_present()
    sites.delete_servers()


@pytest.fixture(scope="session")
def replicated_image(sites):
    """Of both sites, with a file; its id. Nobody changes it."""
    made = sites.ask("Site1", "image", "/v2/images", "POST", scope="{image: Site1 & Site2}", body={
        "name": sites.name("image"), "disk_format": "raw", "container_format": "bare", "visibility": "public"})
    assert made.status == 201, made
    path = f"/v2/images/{made.json['id']}"
    stored = sites.ask("Site1", "image", f"{path}/file", "PUT", body=b"x" * 4096, headers={"Content-Type": "application/octet-stream"})
    assert stored.status == 204, stored

    def active(site):
        answer = sites.ask(site, "image", path, direct=True)
        return answer.status == 200 and answer.json["status"] == "active"

    openstack_lab.wait_for(lambda: all(map(active, sites.sites)), "the image to be at both sites")
    return made.json["id"]
