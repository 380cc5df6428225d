"""DBOS on SQLite: one workflow of COUNT trivial steps. Argument: COUNT."""

import os
import sys

from dbos import DBOS
from measure import Meter, emit

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])
DBOS(config={"name": "chain", "system_database_url": f"sqlite:///{root}/db.sqlite", "log_level": "ERROR"})


@DBOS.step()
def step(i: int) -> dict[str, int]:
    return {"n": i}


@DBOS.workflow()
def chain(n: int) -> int:
    for i in range(n):
        step(i)
    return n


DBOS.launch()
chain(5)
meter = Meter(root).start()
chain(count)
emit(meter.stop(count))
DBOS.destroy()
