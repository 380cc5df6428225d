"""What a daemon costs that waits: wakes, processor and memory of the whole process tree, beside an a2a-sdk server.

    .venv/bin/python benchmarks/idle.py [--seconds 60] [--settle 15] [--venvs DIR]

With `--venvs`, `a2a` there takes part. The daemon has a durable store, a schedule, a signal, and a workflow with an
agent, so that what forks its turns is up too.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import (
    HERE,
    Line,
    agentd,
    aim,
    configure,
    directory,
    environment,
    over,
    pss,
    python_of,
    ratio,
    spent,
    switches,
    tree,
)
from measure import table as show


def daemon(store: Path) -> list[str]:
    steps = {
        "hourly": {"kind": "schedule", "every": "1h"},
        "asked": {"kind": "signal", "name": "look"},
        "turn": {"kind": "agent", "instruction": "look around", "depends_on": ["hourly", "asked"]},
        "end": {"kind": "finish", "depends_on": ["turn"]},
    }
    file = configure(
        store,
        lifecycle={"run_until": "drained"},
        intelligence={"endpoints": ["mock:final"]},
        workflows=[{"name": "look", "steps": steps}],
    )
    return [agentd(), "-c", str(file)]


@contextlib.contextmanager
def started(commands: dict[str, Sequence[str]], store: Path) -> Iterator[dict[str, int]]:
    """All of them at once; their process ids. They must still be there in the end."""
    with contextlib.ExitStack() as stack:
        processes = {}
        for name, command in commands.items():
            process = processes[name] = subprocess.Popen(command, env=environment(store), stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield {name: process.pid for name, process in processes.items()}
        if gone := [name for name, process in processes.items() if process.poll() is not None]:
            raise SystemExit(f"ended too early: {', '.join(gone)}")


def watch(pids: dict[str, int], seconds: float) -> dict[str, Line]:
    before = {name: (over(pid, switches), over(pid, spent)) for name, pid in pids.items()}
    time.sleep(seconds)
    return {
        name: {
            "processes": len(tree(pid)),
            "wakes_s": (over(pid, switches) - before[name][0]) / seconds,
            "cpu_s_min": (over(pid, spent) - before[name][1]) / seconds * 60,
            "pss_mb": over(pid, pss),
        }
        for name, pid in pids.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=15)
    parser.add_argument("--venvs")
    given = parser.parse_args()
    with directory() as store:
        commands: dict[str, Sequence[str]] = {"agentd": daemon(store)}
        if (python := python_of(given.venvs, "a2a")) is not None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            commands["a2a-sdk server"] = [python, str(HERE / "peers" / "idle_a2a.py"), str(port)]
        with started(commands, store) as pids:
            time.sleep(given.settle)
            results = watch(pids, given.seconds)
    columns = {"processes": "d", "wakes_s": ".2f", "cpu_s_min": ".2f", "pss_mb": ".1f"}
    show(f"idle for {given.seconds:g} s", results, columns)
    met = [
        aim("wakes per second", results["agentd"]["wakes_s"], "<=", 2),
        aim("memory of an a2a-sdk server", ratio(results, "agentd", "a2a-sdk server", "pss_mb"), "<=", 0.6),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
