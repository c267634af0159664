"""Fixtures of the tests in the lab."""
import contextlib

import pytest
import wan_lab


@pytest.fixture
def start():
    """start(what, ...): a lab, ended after the test."""
    with contextlib.ExitStack() as labs:
        yield lambda what, **options: labs.enter_context(wan_lab.Lab(what, **options))


@pytest.fixture
def net(start):
    """Three sites without agents, and between them no delay and no fault."""
    lab = start(3, agents=False)
    lab.set("*", "*", delay="0")
    return lab
