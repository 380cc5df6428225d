"""A log that nobody reads stops nothing: the daemon works, answers and drains."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import UsageError
from agentd.runtime.ask import ask
from tests.daemon.command import AGENTD, environment

_RUNS = 150
"""Some 800 bytes of log each: far more than a pipe holds."""


def _finished(state: Path) -> int:
    value: dict[str, Any] = ask(state, "status", {}, timeout=10)["value"]
    return sum(value["finished"].values())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["unread", "closed"])
def test_a_daemon_whose_log_nobody_takes_goes_on(tmp_path: Path, how: str) -> None:
    burst = {"s": {"kind": "loop", "delay": "5ms"}, "f": {"kind": "finish", "depends_on": ["s"]}}
    document = {
        "store": {"kind": "file", "file": {"path": str(tmp_path / "state")}},
        "observability": {"log_level": "debug"},
        "workflows": [{"name": "w", "steps": burst}],
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    read, write = os.pipe()
    daemon = subprocess.Popen(
        [*AGENTD, "-c", "a.json"], cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=write,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    if how == "closed":
        os.close(read)
    try:
        seen = 0
        while seen < _RUNS:
            assert daemon.poll() is None
            with contextlib.suppress(UsageError):  # it does not answer yet
                seen = _finished(tmp_path / "state")
        daemon.terminate()
        out, _ = daemon.communicate(timeout=40)
    finally:
        daemon.kill()
    assert (daemon.returncode, out) == (0, b"")
    if how == "unread":
        os.close(read)
