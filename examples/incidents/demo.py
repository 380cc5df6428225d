"""Run the demonstration: the incident server, and agentd beside it for one piece of work.

The model is the one your environment names (AGENTD_INTELLIGENCE, AGENTD_MODEL, AGENTD_INTELLIGENCE_TOKEN), else a
script that plays one. Arguments are handed to agentd.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
AGENTD = [sys.executable, "-m", "agentd"]
TASK = "Summarise today's open incidents, worst first, and post a digest of at most three lines."


def main() -> int:
    with subprocess.Popen([sys.executable, HERE / "server.py"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            endpoint = server.stdout.readline().strip()
            if not endpoint:
                print("the incident server did not start", file=sys.stderr)
                return 1
            work = ["--instruction", TASK, "--mcp", f"incidents={endpoint}", "--deadline", "5m", "--max-steps", "40"]
            if not any(os.environ.get(name) for name in ("AGENTD_INTELLIGENCE", "AGENT_INTELLIGENCE", "INTELLIGENCE")):
                work += ["--intelligence", f"mock:{HERE / 'mock.yaml'}", "--model", "mock"]
            return subprocess.run([*AGENTD, *work, *sys.argv[1:]]).returncode
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
