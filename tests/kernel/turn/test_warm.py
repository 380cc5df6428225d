"""What the zygote imports before it forks."""

from __future__ import annotations

import json
import subprocess
import sys

_PROBE = """
import json, sys, threading
from agentd.turn.warm import warm
warm(**json.loads(sys.argv[1]))
watched = ("httpx", "agentd.turn.main", "mcp.client.session", "agentd.runtime", "starlette", "uvicorn", "rich")
print(json.dumps([threading.active_count(), [m for m in watched if m in sys.modules]]))
"""


def probe(**how: bool) -> list[object]:
    argv = [sys.executable, "-c", _PROBE, json.dumps(how)]
    found: list[object] = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
    return found


def test_everything_is_there_and_no_thread() -> None:
    assert probe() == [1, ["httpx", "agentd.turn.main", "mcp.client.session"]]


def test_a_turn_without_servers_is_spared_the_sdk() -> None:
    assert probe(mcp=False, rehearse=False) == [1, ["httpx", "agentd.turn.main"]]
