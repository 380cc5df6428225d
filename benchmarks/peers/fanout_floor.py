"""The fan-out by hand: COUNT runs at once, two records each, group commit by one writer. Argument: COUNT."""

import asyncio
import json
import os
import sys

from measure import Meter, emit

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])
fd = os.open(f"{root}/journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
waiting: list[tuple[bytes, asyncio.Future[None]]] = []


def commit(records: list[bytes]) -> None:
    os.write(fd, b"".join(records))
    os.fdatasync(fd)


async def write(woken: asyncio.Event) -> None:
    global waiting
    while True:
        await woken.wait()
        woken.clear()
        while waiting:
            batch, waiting = waiting, []
            await asyncio.to_thread(commit, [record for record, _ in batch])
            for _, future in batch:
                future.set_result(None)


async def main() -> None:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def put(record: dict[str, object]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = loop.create_future()
        waiting.append((json.dumps(record).encode() + b"\n", future))
        woken.set()
        return future

    async def run(i: int) -> None:
        await put({"run": f"r{i:026d}", "event": "accepted", "workflow": "w", "inputs": {"n": i}, "ts": 1.0})
        await put({"run": f"r{i:026d}", "event": "done", "step": "s", "result": {"n": i}, "ts": 1.0})

    writer = asyncio.create_task(write(woken))
    await run(-1)
    meter = Meter(root).start()
    await asyncio.gather(*map(run, range(count)))
    emit(meter.stop(count))
    writer.cancel()


asyncio.run(main())
