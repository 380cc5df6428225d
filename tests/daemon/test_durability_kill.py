"""SIGKILL at random instants: what was acknowledged is there, what was done stays done, everything ends well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.lives import Lives, check_all_done, kill_rounds

WORK: dict[str, Any] = {
    "limits": {"max_runs": 32},
    "workflows": [
        {
            "name": "fired",
            "concurrency": {"max_runs": 16},
            "steps": {
                "s": {"kind": "proof.burst", "count": 40},
                "a": {"kind": "proof.effect", "depends_on": ["s"], "takes": 0.01},
                "f": {"kind": "finish", "depends_on": ["a"]},
            },
        },
        {
            "name": "asked",
            "concurrency": {"max_runs": 16},
            "inputs": {"schema": {"type": "object"}},
            "steps": {
                "s": {"kind": "manual"},
                "a": {"kind": "proof.effect", "depends_on": ["s"], "value": [1, 2, 3]},
                "nap": {"kind": "sleep", "depends_on": ["a"], "duration": "50ms"},
                "flaky": {
                    "kind": "proof.effect", "depends_on": ["nap"], "fails": 2, "retry": {"max": 20, "backoff": "5ms"},
                },
                "each": {
                    "kind": "foreach", "over": "{{steps.a.output}}", "depends_on": ["flaky"],
                    "body": {"x": {"kind": "proof.effect", "value": "{{item}}", "takes": 0.005}},
                },
                "left": {"kind": "proof.effect", "depends_on": ["s"], "takes": 0.03},
                "f": {"kind": "finish", "depends_on": ["each", "left"], "output": "{{steps.each.output}}"},
            },
        },
    ],
}  # fmt: skip


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    found = Lives(tmp_path, WORK)
    yield found
    found.close()


@pytest.mark.timeout(180)
def test_killed_at_random_instants(lives: Lives) -> None:
    kill_rounds(lives, "asked", 10, runs=20, within=0.25)
    lives.begin()
    check_all_done(lives)
    assert len(lives.accepted) > 10
    assert len({e["inbox_event"] for _, e in lives.named("start.fired") if e["workflow"] == "fired"}) == 40
    assert lives.end().code == 0
