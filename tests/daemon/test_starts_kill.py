"""Start nodes of a daemon that is killed again and again: nothing they fire is lost or comes twice."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.command import Running, run

KILLS = 5


def _workflow(name: str, start: dict[str, Any], before: dict[str, Any] | None = None) -> dict[str, Any]:
    middle = {"b": {**before, "depends_on": ["s"]}} if before else {}
    end = {"kind": "finish", "depends_on": ["b" if before else "s"], "output": "{{steps.s.output}}"}
    return {"name": name, "steps": {"s": start, **middle, "f": end}}


@pytest.mark.timeout(180)
def test_ticks_iterations_and_events_come_once_whatever_happens(tmp_path: Path) -> None:
    emit = {"kind": "emit", "stream": "ticks", "subject": "tick", "payload": "{{steps.s.output.tick}}"}
    document = {
        "agent": {"name": "t"},
        "store": {"kind": "file", "file": {"path": str(tmp_path / "kept")}},
        "streams": {"ticks": {}},
        "limits": {"max_runs": 100},
        "workflows": [
            _workflow("tick", {"kind": "schedule", "every": "50ms", "catch_up": "all"}, emit),
            _workflow("again", {"kind": "loop", "delay": "20ms"}),
            _workflow("heard", {"kind": "stream", "stream": "ticks"}),
            _workflow("after", {"kind": "event", "on": "workflow.finished", "filter": "workflow == 'again'"}),
        ],
    }
    (tmp_path / "c.yaml").write_text(json.dumps(document))
    dice = random.Random(7)
    for life in range(KILLS + 1):
        daemon = Running(tmp_path, "-c", "c.yaml")
        daemon.wait_for("proc.ready")
        daemon.wait_for("run.done", workflow="heard", count=4)
        if life < KILLS:
            time.sleep(dice.random() / 4)  # anywhere inside the work
            daemon.kill()
    assert daemon.end().code == 0

    runs = _runs(tmp_path)
    again = Counter(r["output"]["iteration"] for r in runs["again"] if "output" in r)
    assert set(again.values()) == {1} and len(again) >= max(again) - 1  # the last one may not have ended
    ticks = Counter(r["payload"]["tick"] for r in runs["tick"])
    assert set(ticks.values()) == {1}
    times = sorted(_seconds(tick) for tick in ticks)
    assert all(0.04 < b - a < 0.06 for a, b in pairwise(times)), times
    heard = sorted(r["payload"]["n"] for r in runs["heard"])
    assert heard == list(range(1, len(heard) + 1)) and len(heard) >= 4 * KILLS
    after = Counter(r["payload"]["run"] for r in runs["after"])
    assert set(after.values()) == {1} and len(again) - len(after) <= 2


def _runs(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """The run records (and what waits to become one), by workflow, in order of their events."""
    done = run(directory, "store", "export", "--path", "kept")
    assert done.code == 0, done.events
    found: dict[str, list[dict[str, Any]]] = {}
    for line in done.out.splitlines():
        envelope = json.loads(line)["envelope"]
        if envelope["kind"] in ("run", "inbox") and "workflow" in envelope["state"]:
            found.setdefault(envelope["state"]["workflow"], []).append(envelope["state"])
    for runs in found.values():
        runs.sort(key=lambda state: state.get("accepted") or state.get("ts"))
    return found


def _seconds(tick: str) -> float:
    return datetime.fromisoformat(tick).timestamp()
