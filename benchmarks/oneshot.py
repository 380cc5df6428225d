"""One job from the command line to its exit: two model calls and one MCP tool call against loopback mocks.

    .venv/bin/python benchmarks/oneshot.py [--rounds 5] [--venvs DIR]

With `--venvs`, `oai` (openai-agents) and `pydai` (pydantic-ai) there take part. Time is of the whole process; memory is
the largest PSS of the whole process tree in samples of a few milliseconds, in a round of its own, as sampling takes
time from a job.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measure import HERE, Line, agentd, aim, contest, directory, environment, over, pss, python_of, ratio
from measure import table as show


@contextlib.contextmanager
def mocks() -> Iterator[tuple[str, str]]:
    """The URLs of a model and of an MCP server."""
    command = [sys.executable, str(HERE / "peers" / "mocks.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        try:
            yield f"{url}/v1", f"{url}/mcp"
        finally:
            process.kill()


def oneshot(command: list[str], store: Path) -> Line:
    """Two runs of the command: one for its time, one for its memory."""
    environ = environment(store, OPENAI_AGENTS_DISABLE_TRACING="1")
    began = time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if "done: 3" not in done.stdout:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
    most = 0.0
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = max(most, over(process.pid, pss))
            time.sleep(0.005)
    return {"ms": seconds * 1e3, "pss_mb": most}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--venvs")
    given = parser.parse_args()
    with mocks() as (model, tools), directory() as store:
        own = [agentd(), "--instruction", "add 1 and 2", "--intelligence", model, "--mcp", f"calc={tools}"]
        commands: dict[str, list[str] | None] = {
            "agentd": own,
            "floor: by hand": [sys.executable, str(HERE / "peers" / "oneshot_floor.py"), model, tools],
        }
        for name, venv, script in (
            ("openai-agents", "oai", "oneshot_openai_agents.py"),
            ("pydantic-ai", "pydai", "oneshot_pydantic_ai.py"),
        ):
            python = python_of(given.venvs, venv)
            commands[name] = [python, str(HERE / "peers" / script), model, tools] if python else None
        entries = {n: (lambda c=c: oneshot(c, store)) if c else None for n, c in commands.items()}
        results = contest(entries, given.rounds)
    show(f"one job, medians of {given.rounds} rounds", results, {"ms": ",.0f", "pss_mb": ".1f"})
    best = {
        key: min((results[n][key], n) for n in results if "-" in n)[1:] for key in ("ms", "pss_mb") if len(results) > 2
    }
    met = [
        aim("time of the quickest peer", ratio(results, "agentd", *best.get("ms", ("",)), "ms"), "<=", 1 / 3),
        aim("memory of the smallest peer", ratio(results, "agentd", *best.get("pss_mb", ("",)), "pss_mb"), "<=", 1),
    ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
