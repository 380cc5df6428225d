"""The reference of workflows says what the kinds declare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_are_up_to_date() -> None:
    command = [sys.executable, "scripts/workflow_reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False)
    assert done.returncode == 0, "run: python scripts/workflow_reference.py"
