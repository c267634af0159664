"""Fixtures of the tests of the sample services."""
import contextlib
import types

import pytest

import sample_services


@pytest.fixture
def start(tmp_path):
    """start(service, *arguments, data=DIR, **environment): an instance, stopped at the end of the test."""
    assert sample_services.EXECUTABLE.exists(), f"{sample_services.EXECUTABLE} is not there: build it, or set CHEOPS_SAMPLE"
    with contextlib.ExitStack() as stops:  # one that does not stop well keeps none of the others from being stopped
        def make(name, *arguments, data=None, **env):
            env.setdefault("SITE_NAME", "Site1")
            service = sample_services.Service(name, data or tmp_path / name, *arguments, **env)
            stops.callback(service.stop)
            return service

        yield make


@pytest.fixture
def record():
    """record(answer): a server that plays a service and notes what it is asked."""
    with contextlib.ExitStack() as stops:
        def make(answer):
            recorder = sample_services.Recorder(answer)
            stops.callback(recorder.stop)
            return recorder

        yield make


@pytest.fixture
def image(start):
    return start("image")


@pytest.fixture
def network(start):
    return start("network")


@pytest.fixture
def site(start, image, network):
    """All three, wired together."""
    compute = start("compute", IMAGE_URL=image.url, NETWORK_URL=network.url + "/")
    return types.SimpleNamespace(image=image, network=network, compute=compute)
