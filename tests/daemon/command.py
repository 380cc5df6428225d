"""The real `agentd` command under test: its process, its events, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENTD = [sys.executable, "-m", "agentd"]
_DROPPED = ("AGENTD_", "AGENT_", "INSTRUCTION", "INTELLIGENCE", "XDG_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A clean environment whose home is `home`."""
    kept = {k: v for k, v in os.environ.items() if not k.upper().startswith(_DROPPED) and k != "HOSTNAME"}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), **(extra or {})}


@dataclass
class Ended:
    """How the command ended: exit code, stdout, and the events on stderr (lines that are no JSON in `odd`)."""

    code: int
    out: str
    events: list[dict[str, Any]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def all(self, event: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e.get("event") == event]

    def one(self, event: str) -> dict[str, Any]:
        found = self.all(event)
        assert len(found) == 1, f"{len(found)} of {event} in {[e.get('event') for e in self.events]}"
        return found[0]


def parse(err: str) -> tuple[list[dict[str, Any]], list[str]]:
    events, odd = [], []
    for line in err.splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            odd.append(line)
    return events, odd


def run(cwd: Path, *args: str, env: Mapping[str, str] | None = None, timeout: float = 50) -> Ended:
    """Run to the end."""
    done = subprocess.run(
        [*AGENTD, *args], cwd=cwd, env=environment(cwd, env), capture_output=True, text=True, timeout=timeout,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    events, odd = parse(done.stderr)
    return Ended(done.returncode, done.stdout, events, odd)


RUNNING: list[Running] = []
"""Whatever a test started; what still runs when it is over is killed."""


class Running:
    """A daemon (or a job that takes its time); its events are waited for, never slept for."""

    def __init__(self, cwd: Path, *args: str, env: Mapping[str, str] | None = None, under: Sequence[str] = ()) -> None:
        """`under` is a command that runs ours."""
        self.process = subprocess.Popen(
            [*under, *AGENTD, *args], cwd=cwd, env=environment(cwd, env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self.odd: list[str] = []
        self._news = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        RUNNING.append(self)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            events, odd = parse(line)
            with self._news:
                self.events += events
                self.odd += odd
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def wait_for(self, event: str, count: int = 1, timeout: float = 30, **fields: Any) -> dict[str, Any]:
        """The `count`-th event of that name with those fields."""
        found: list[dict[str, Any]] = []
        seen = 0

        def enough() -> bool:
            nonlocal seen
            found.extend(e for e in self.events[seen:] if e.get("event") == event and fields.items() <= e.items())
            seen = len(self.events)
            return len(found) >= count or self._over

        with self._news:
            assert self._news.wait_for(enough, timeout), f"{len(found)} of {count} {event} came"
            assert len(found) >= count, f"it ended without {event}: {[e.get('event') for e in self.events]} {self.odd}"
            return found[count - 1]

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int | None = signal.SIGTERM, timeout: float = 30) -> Ended:
        """Signal it and wait for its end."""
        if number is not None and self.process.poll() is None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        self.process.stdout.close()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return Ended(code, out, self.events, self.odd)

    def kill(self) -> Ended:
        """SIGKILL."""
        return self.end(signal.SIGKILL)
