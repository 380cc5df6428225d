"""`make demo`, as a newcomer runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_demonstration_reads_the_incidents_and_posts_a_digest() -> None:
    command = [sys.executable, ROOT / "examples/incidents/demo.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Three incidents are open.")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    called = [event["tool"] for event in events if event["event"] == "tool.call"]
    assert called == ["list_incidents", "get_incident", "get_incident", "post_digest"]
    assert not [event for event in events if event["event"] == "tool.result" and event["is_error"]]
