"""A test that fails leaves no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.daemon.command import RUNNING


@pytest.fixture(autouse=True)
def _nothing_keeps_running() -> Iterator[None]:
    yield
    for started in RUNNING:
        if started.process.poll() is None:
            started.kill()
    RUNNING.clear()
