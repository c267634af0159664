"""Fixtures of the proxy's tests."""
import contextlib
import resource
import types

import pytest

import mesh_maker
import proxy_lab


@pytest.fixture(scope="session", autouse=True)
def descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture(scope="session")
def sanitized(cheops):
    """Is the executable built with a sanitizer? Then figures of memory and speed say nothing."""
    with open(cheops.path, "rb") as file:
        code = file.read()
    return b"__asan_init" in code or b"__tsan_init" in code


@pytest.fixture
def play():
    """play(answer=, script=, port=): a service, stopped at the end of the test."""
    with contextlib.ExitStack() as stops:
        def make(**options):
            service = proxy_lab.Service(**options)
            stops.callback(service.stop)
            return service

        yield make


@pytest.fixture
def service(play):
    return play()


@pytest.fixture
def start(cheops, tmp_path):
    """start(config, …): an agent, stopped at the end of the test; it has to stop well."""
    with contextlib.ExitStack() as stops:
        def make(config, **options):
            agent = proxy_lab.Agent(cheops.path, tmp_path, config, **options)
            stops.callback(agent.stop)
            return agent

        yield make


@pytest.fixture
def agent(start, service):
    """One agent with one thread in front of the one service."""
    return start(proxy_lab.describe(services={"service": [service.port]}))


@pytest.fixture
def join():
    """join(agent, agent, …): makes them one mesh; each knows all others when it returns."""
    return lambda *agents: mesh_maker.make_mesh(agents)


@pytest.fixture
def two_sites(start, play, join):
    """two_sites(**config): Site1 and Site2, an agent and a service each. Scope `Site2` at Site1 goes over there."""
    def make(**others):
        services = [play(), play()]
        agents = [start(proxy_lab.describe(f"Site{n + 1}", {"service": [services[n].port]}, **others)) for n in range(2)]
        join(*agents)
        return types.SimpleNamespace(here=agents[0], there=agents[1], near=services[0], far=services[1])

    return make
