"""Fixtures of the tests of TLS: two authorities, a service, an agent."""
import contextlib

import pytest

import tls_lab
from tls_lab import proxy_lab


@pytest.fixture(scope="session")
def ours(tmp_path_factory):
    return tls_lab.Authority(tmp_path_factory.mktemp("ours"), "the authority of the tests")


@pytest.fixture(scope="session")
def theirs(tmp_path_factory):
    return tls_lab.Authority(tmp_path_factory.mktemp("theirs"), "another authority")


@pytest.fixture(scope="session")
def pair(ours):
    """Of localhost."""
    return ours.issue("server")


@pytest.fixture
def play():
    """play(pair=, clients=, answer=…): a service, with TLS if it has a pair; stopped at the end of the test."""
    with contextlib.ExitStack() as stops:
        def make(pair=None, **options):
            service = tls_lab.TlsService(pair, **options) if pair else proxy_lab.Service(**options)
            stops.callback(service.stop)
            return service

        yield make


@pytest.fixture
def start(cheops, tmp_path):
    """start(services, **config): an agent, stopped at the end of the test; it has to stop well."""
    with contextlib.ExitStack() as stops:
        def make(services, env=None, **others):
            config = proxy_lab.describe(services=services, state=str(tmp_path / "state"), **others)
            agent = proxy_lab.Agent(cheops.path, tmp_path, config, env=env)
            stops.callback(agent.stop)
            return agent

        yield make
