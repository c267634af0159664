"""Fixtures of the tests of the demo."""
import contextlib

import demo_process
import pytest


@pytest.fixture
def start(tmp_path):
    """start(*arguments, ...): a demo, stopped at the end of the test."""
    with contextlib.ExitStack() as stops:
        def make(*arguments, folder="demo", **options):
            demo = demo_process.Demo(tmp_path / folder, *arguments, **options)
            stops.callback(demo.stop)
            return demo

        yield make
