"""How long until a daemon is ready: `proc.ready` as a multiple of `python -c pass`.

    .venv/bin/python benchmarks/ready.py [--rounds 20]

The least of the rounds counts, as in cold.py: whatever else the machine does only ever adds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import agentd, aim, configure, directory, environment


def until_ready(command: list[str], store: Path) -> float:
    """Seconds from the start to the line that says so."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=environment(store), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        said = b""
        for line in process.stderr:
            if b'"event":"proc.ready"' in line:
                seconds = time.perf_counter() - began
                process.terminate()
                process.stderr.read()
                return seconds
            said = line
    raise SystemExit(f"never ready: {said.decode()}")


def passing() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    steps = {
        "asked": {"kind": "signal", "name": "look"},
        "turn": {"kind": "agent", "instruction": "look around", "depends_on": ["asked"]},
        "end": {"kind": "finish", "depends_on": ["turn"]},
    }
    sections = {
        "lifecycle": {"run_until": "drained"},
        "observability": {"log_level": "info"},
        "intelligence": {"endpoints": ["mock:final"]},
        "workflows": [{"name": "look", "steps": steps}],
    }
    floor, file_store, memory_store = [], [], []
    with directory() as durable, directory() as volatile:
        command = [agentd(), "-c", str(configure(durable, **sections))]
        light = [agentd(), "-c", str(configure(volatile, store={"kind": "memory"}, **sections))]
        for _ in range(given.rounds):
            floor.append(passing())
            file_store.append(until_ready(command, durable))
            memory_store.append(until_ready(light, volatile))
    pass_ms, file_ms, memory_ms = (min(times) * 1e3 for times in (floor, file_store, memory_store))
    print(f"\nleast of {given.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"python -c pass {pass_ms:.1f} ms, ready with the file store {file_ms:.0f} ms, in memory {memory_ms:.0f} ms")
    met = [
        aim("ready with the file store, over python -c pass", file_ms / pass_ms, "<=", 30),
        aim("ready with the memory store, over python -c pass", memory_ms / pass_ms, "<=", 30),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
