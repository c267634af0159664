"""Fixtures of the tests with OpenStack."""
import openstack_lab
import pytest


@pytest.fixture(scope="session")
def sites():
    with openstack_lab.Lab() as lab:
        yield lab


@pytest.fixture
def lab(sites):
    """Two sites that see each other, without servers."""
    yield sites
    sites.heal()
    sites.wait_present()
    sites.delete_servers()
