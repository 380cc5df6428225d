"""The chain by hand: one record of 200 bytes durable before the next. Arguments: journal|sqlite COUNT."""

import json
import os
import sqlite3
import sys

from measure import Meter, emit


def record(i: int) -> bytes:
    step = {"run": "01J" + "A" * 23, "step": f"s{i}", "seq": i, "status": "done", "result": {"n": i}, "ts": 1.7e9}
    return json.dumps({**step, "hash": "0" * 40}).encode() + b"\n"


store, count = sys.argv[1], int(sys.argv[2])
root = os.environ["BENCH_DATA"]
if store == "journal":
    fd = os.open(f"{root}/journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    meter = Meter(root).start()
    for i in range(count):
        os.write(fd, record(i))
        os.fdatasync(fd)
else:
    db = sqlite3.connect(f"{root}/db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE steps (run, step, record, PRIMARY KEY (run, step))")
    meter = Meter(root).start()
    for i in range(count):
        db.execute("INSERT INTO steps VALUES ('r', ?, ?)", (i, record(i)))
emit(meter.stop(count))
