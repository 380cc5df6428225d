"""The health file: rewritten while the loop is live, so that a probe can test its age."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from agentd.ports.host import Clock, Log

INTERVAL = 10.0
"""Seconds between two writes."""


async def keep(path: str, instance: str, clock: Clock, log: Log) -> None:
    """Write `path` now and every 10 s, for ever; a file that cannot be written is said once and tried again."""
    complained = False
    try:
        while True:
            try:
                _write(Path(path), instance, clock.now())
                complained = False
            except OSError as e:
                if not complained:
                    log("store.error", level="warn", msg=f"cannot write the health file {path}: {e.strerror}")
                complained = True
            await clock.sleep(INTERVAL)
    finally:
        _remove(Path(path))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _write(path: Path, instance: str, now: float) -> None:
    # In place of the old one at once: a reader never sees half a file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"instance": instance, "pid": os.getpid(), "ts": round(now, 3)}) + "\n")
    temporary.replace(path)
