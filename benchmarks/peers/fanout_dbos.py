"""DBOS on SQLite: COUNT workflows of one step at once. Argument: COUNT."""

import asyncio
import os
import sys

from dbos import DBOS
from measure import Meter, emit

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])
DBOS(config={"name": "fan", "system_database_url": f"sqlite:///{root}/db.sqlite", "log_level": "ERROR"})


@DBOS.step()
async def step(i: int) -> dict[str, int]:
    return {"n": i}


@DBOS.workflow()
async def one(i: int) -> dict[str, int]:
    return await step(i)


async def main() -> None:
    await (await DBOS.start_workflow_async(one, -1)).get_result()
    meter = Meter(root).start()
    handles = await asyncio.gather(*(DBOS.start_workflow_async(one, i) for i in range(count)))
    await asyncio.gather(*(handle.get_result() for handle in handles))
    emit(meter.stop(count))


DBOS.launch()
asyncio.run(main())
os._exit(0)
