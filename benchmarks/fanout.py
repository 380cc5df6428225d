"""1,000 runs of one step at once, each accepted durably and ended durably.

    .venv/bin/python benchmarks/fanout.py [--rounds 3] [--runs 1000] [--venvs DIR] [--tmpfs]

With `--venvs`, `dbos` and `langgraph` there take part. Runs share flushes: how many is what to hold on to.
"""

from __future__ import annotations

import argparse
import sys

from measure import COUNTERS, Line, agentd, aim, configure, contest, contestant, directory, environment, peer, ratio
from measure import table as show


def fanout(count: int, *, tmpfs: bool) -> Line:
    """The real command: a start node that fires `count` events at once, and measures until every run has ended."""
    steps = {
        "start": {"kind": "bench.burst", "count": count, "meter": True},
        "one": {"kind": "bench.effect", "value": "{{steps.start.output}}", "depends_on": ["start"]},
        "end": {"kind": "finish", "output": "{{steps.one.output}}", "depends_on": ["one"]},
    }
    with directory(tmpfs=tmpfs) as store:
        workflow = {"name": "fan", "concurrency": {"max_runs": count}, "steps": steps}
        file = configure(store, limits={"max_runs": count}, workflows=[workflow])
        return contestant([agentd(), "-c", str(file)], environment(store))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--venvs")
    parser.add_argument("--tmpfs", action="store_true")
    given = parser.parse_args()
    n, tmpfs = given.runs, given.tmpfs
    results = contest(
        {
            "agentd": lambda: fanout(n, tmpfs=tmpfs),
            "floor: group commit": peer(None, "", "fanout_floor.py", n, tmpfs=tmpfs),
            "DBOS, SQLite": peer(given.venvs, "dbos", "fanout_dbos.py", n, tmpfs=tmpfs),
            "LangGraph, sync": peer(given.venvs, "langgraph", "fanout_langgraph.py", n, tmpfs=tmpfs),
        },
        given.rounds,
    )
    where = "in memory" if tmpfs else "on disk"
    show(f"{n:,} runs at once {where}, medians of {given.rounds} rounds", results, COUNTERS)
    met = [
        aim("runs/s over DBOS on SQLite", ratio(results, "agentd", "DBOS, SQLite"), ">=", 30),
        aim("runs/s over the group commit floor", ratio(results, "agentd", "floor: group commit"), ">=", 0.09),
        aim("MB at most", results["agentd"]["peak_mb"], "<=", 70),
    ]
    if not tmpfs:
        met.append(aim("flushes per run", results["agentd"]["flushes"], "<=", 0.05))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
