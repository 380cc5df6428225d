"""The order of system calls: what is acknowledged, and every effect, comes after the flush of the commit behind it.

A kill cannot tell a write that reached the disk from one in the page cache; a trace of the calls can.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.lives import Lives

RUNS = 12
WORK: dict[str, Any] = {
    "workflows": [
        {
            "name": "w",
            "concurrency": {"max_runs": 8},
            "steps": {
                "s": {"kind": "manual"},
                "first": {"kind": "proof.effect", "depends_on": ["s"]},
                "second": {"kind": "proof.effect", "depends_on": ["first"]},
                "f": {"kind": "finish", "depends_on": ["second"]},
            },
        }
    ]
}
_CALL = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)$")
_RESUMED = re.compile(r"^(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$")


class Trace:
    """Writes and flushes in the order they began and ended: ``(began, ended, name, rest)``, both line numbers."""

    def __init__(self, text: str) -> None:
        self.calls: list[tuple[int, int, str, str]] = []
        begun: dict[str, tuple[int, str, str]] = {}
        for number, line in enumerate(text.splitlines()):
            if (resumed := _RESUMED.match(line)) is not None and resumed["pid"] in begun:
                began, name, rest = begun.pop(resumed["pid"])
                self.calls.append((began, number, name, rest + resumed["rest"]))
            elif (call := _CALL.match(line)) is not None:
                if call["rest"].endswith("<unfinished ...>"):
                    begun[call["pid"]] = (number, call["name"], call["rest"].removesuffix("<unfinished ...>"))
                else:
                    self.calls.append((number, number, call["name"], call["rest"]))
        self.calls.sort()

    def flushed(self, text: str) -> int:
        """The line at which the first flush ended that began after the log was written with `text` in it."""
        logged = next(ended for _, ended, name, rest in self.calls
                      if name == "pwrite64" and "-wal>" in rest and text in rest)  # fmt: skip
        return next(ended for began, ended, name, rest in self.calls
                    if name in ("fdatasync", "fsync") and "-wal>" in rest and began > logged)  # fmt: skip

    def began(self, *texts: str) -> int:
        """The line at which the first write began that holds all of `texts` in one line of its own."""
        found = [began for began, _, name, rest in self.calls
                 if name in ("write", "sendto", "sendmsg", "writev")
                 and any(all(text in line for text in texts) for line in rest.split(r"\n"))]  # fmt: skip
        assert found, f"nothing was written with {texts}"
        return found[0]


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Lives]:
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-f", "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("needs strace, and the right to trace")
    lives = Lives(tmp_path, WORK)
    lives.begin(under=(strace, "-f", "-y", "-s", "70000", "-o", str(tmp_path / "trace"), "-e",
                       "trace=write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync"))  # fmt: skip
    yield lives
    lives.close()


def sealed(kind: str, id: str, seq: int) -> str:
    """How the envelope of a record begins, as strace writes it."""
    return rf"{{\"v\":1,\"kind\":\"{kind}\",\"id\":\"{id}\",\"seq\":{seq},"


def test_acknowledgements_and_effects_come_after_the_flush_of_their_commit(traced: Lives) -> None:
    for i in range(RUNS):
        assert traced.submit("w", f"run-number-{i:02d}")
    traced.finish()
    os.kill(traced.lives[0].events[0]["pid"], signal.SIGTERM)
    assert traced.end(None).code == 0
    trace = Trace((traced.home / "trace").read_text(errors="replace"))
    for i in range(RUNS):
        run = f"run-number-{i:02d}"
        accepted = trace.flushed(sealed("inbox", run, 1))
        assert trace.began("start.fired", run) > accepted
        assert trace.began(r"{\"ok\":true", run) > accepted
        assert trace.began("run.start", run) > trace.flushed(sealed("run", run, 1))
        for step in ("first", "second"):
            announced, ended = (trace.flushed(sealed("step", f"{run}/{step}", seq)) for seq in (1, 2))
            assert announced < trace.began(f"begin {run} {step} ") < ended
            assert trace.began("step.done", rf"\"run\":\"{run}\",\"step\":\"{step}\"") > ended
        assert trace.began("run.done", run) > trace.flushed(sealed("run", run, 2))
