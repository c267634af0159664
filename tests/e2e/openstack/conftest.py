"""Fixtures of the tests with OpenStack, their order, and what is shown of one that fails."""
import pathlib

import openstack_lab
import pytest

HERE = pathlib.Path(__file__).parent
# One lab serves all. What is replicated is seen by the ids of Cheops from then on, so what compares answers with those of OpenStack alone
# comes before anything is; what has Nova configured anew comes last.
FIRST, LAST = ["test_lab", "test_sharing"], ["test_by_osprofiler"]


def pytest_collection_modifyitems(items):
    def place(item):
        return (item.path.stem not in FIRST) + (item.path.stem in LAST)

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
