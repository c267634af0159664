"""Fixtures of the tests of failover."""
import itertools

import failover_lab
import pytest

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def network(cheops):
    """Four sites in namespaces, which have joined one another."""
    made = failover_lab.Network(cheops.path)
    yield made
    made.close()


@pytest.fixture
def lab(network):
    """lab.start(): Site1, Site2, Site3; requests are sent to Site1."""
    with failover_lab.Lab(network, str(next(_numbers))) as made:
        yield made
