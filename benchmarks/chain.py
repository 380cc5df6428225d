"""A durable chain: each of 1,000 trivial effects durable before the next; then 100 and 10,000, to see it grow.

    .venv/bin/python benchmarks/chain.py [--rounds 3] [--steps 1000] [--venvs DIR] [--tmpfs]

With `--venvs`, `dbos` and `langgraph` there take part, and `restate` with `--restate SERVER`. On the disk of $TMPDIR,
or in memory with `--tmpfs`, which shows what the processor costs; the count that holds everywhere is flushes per step.
"""

from __future__ import annotations

import argparse
import sys

from measure import COUNTERS, Line, agentd, aim, configure, contest, contestant, directory, environment, peer, ratio
from measure import table as show


def chain(count: int, *, tmpfs: bool, level: str = "warn") -> Line:
    """The real command: one run that iterates `count` times over one effect, its meter before and after."""
    body = {"effect": {"kind": "bench.effect", "value": {"n": "{{iteration}}"}}}
    steps = {
        "start": {"kind": "once"},
        "before": {"kind": "bench.measure", "at": "start", "depends_on": ["start"]},
        "loop": {"kind": "iterate", "max_iterations": count, "body": body, "depends_on": ["before"]},
        "after": {"kind": "bench.measure", "at": "stop", "count": count, "depends_on": ["loop"]},
        "end": {"kind": "finish", "depends_on": ["after"]},
    }
    with directory(tmpfs=tmpfs) as store:
        file = configure(
            store,
            limits={"run": {"steps": count + 10}},
            observability={"log_level": level},
            workflows=[{"name": "chain", "steps": steps}],
        )
        return contestant([agentd(), "-c", str(file)], environment(store))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--venvs")
    parser.add_argument("--restate", metavar="SERVER", help="the binary of Restate's server")
    parser.add_argument("--tmpfs", action="store_true")
    parser.add_argument("--log-level", default="warn")
    given = parser.parse_args()
    n, tmpfs = given.steps, given.tmpfs
    results = contest(
        {
            "agentd": lambda: chain(n, tmpfs=tmpfs, level=given.log_level),
            "floor: journal": peer(None, "", "chain_floor.py", "journal", n, tmpfs=tmpfs),
            "floor: SQLite": peer(None, "", "chain_floor.py", "sqlite", n, tmpfs=tmpfs),
            "DBOS, SQLite": peer(given.venvs, "dbos", "chain_dbos.py", n, tmpfs=tmpfs),
            "LangGraph, sync": peer(given.venvs, "langgraph", "chain_langgraph.py", n, tmpfs=tmpfs),
            "Restate": peer(given.venvs, "restate", "chain_restate.py", given.restate, n, tmpfs=tmpfs)
            if given.restate
            else None,
            "agentd, a tenth": lambda: chain(n // 10, tmpfs=tmpfs, level=given.log_level),
            "agentd, ten times": lambda: chain(n * 10, tmpfs=tmpfs, level=given.log_level),
        },
        given.rounds,
    )
    show(f"{n:,} steps {'in memory' if tmpfs else 'on disk'}, medians of {given.rounds} rounds", results, COUNTERS)
    own = results["agentd"]
    met = [
        aim("steps/s over DBOS on SQLite", ratio(results, "agentd", "DBOS, SQLite"), ">=", 5),
        aim("steps/s over LangGraph sync", ratio(results, "agentd", "LangGraph, sync"), ">=", 2.2),
        aim("steps/s over Restate", ratio(results, "agentd", "Restate"), ">=", 3),
        aim(f"rate of {n * 10:,} over {n // 10:,}", ratio(results, "agentd, ten times", "agentd, a tenth"), ">=", 0.9),
    ]
    if tmpfs:
        met.append(aim("steps/s in memory", own["rate"], ">=", 10_000))
    else:
        met.append(aim("of the journal floor", ratio(results, "agentd", "floor: journal"), ">=", 0.5))
        met.append(aim("flushes per step", own["flushes"], "<=", 1.05))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
