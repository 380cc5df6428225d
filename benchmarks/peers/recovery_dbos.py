"""DBOS on SQLite: COUNT workflows of four steps that wait at a gate before the third. Argument: COUNT."""

import asyncio
import os
import sys
from pathlib import Path

from dbos import DBOS

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])
again, gate = Path(root, "again").exists(), Path(root, "gate")
effects = os.open(os.environ["BENCH_EFFECTS"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
DBOS(
    config={
        "name": "recovery",
        "system_database_url": f"sqlite:///{root}/db.sqlite",
        "log_level": "ERROR",
        "application_version": "v1",
        "executor_id": "local",
    }
)


def note(run: str, what: object) -> None:
    os.write(effects, f"{run} {what}\n".encode())


@DBOS.step()
async def step(run: str, i: int) -> None:
    note(run, i)


@DBOS.workflow()
async def four(run: str) -> None:
    for i in range(4):
        while i == 2 and not gate.exists():  # noqa: ASYNC110, ASYNC240 another process makes it
            await asyncio.sleep(0.02)
        await step(run, i)
    note(run, "done")


async def main() -> None:
    if not again:
        await asyncio.gather(*(DBOS.start_workflow_async(four, f"r{i}") for i in range(count)))
    await asyncio.sleep(600)


DBOS.launch()
asyncio.run(main())
