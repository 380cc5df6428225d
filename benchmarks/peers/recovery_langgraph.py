"""LangGraph with its asynchronous SQLite saver: COUNT threads of four nodes that wait at a gate before the third.

It keeps no list of unfinished runs, so the second life finds the threads itself. Argument: COUNT.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])
again, gate = Path(root, "again").exists(), Path(root, "gate")
effects = os.open(os.environ["BENCH_EFFECTS"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)


class State(TypedDict):
    run: str


def note(run: str, what: object) -> None:
    os.write(effects, f"{run} {what}\n".encode())


async def main() -> None:
    opened = asyncio.Event()

    def node(i: int):
        async def perform(state: State) -> State:
            if i == 2:
                await opened.wait()
            note(state["run"], i)
            return {"run": state["run"]}

        return perform

    async with AsyncSqliteSaver.from_conn_string(f"{root}/db.sqlite") as saver:
        await saver.setup()
        graph = StateGraph(State)
        for i in range(4):
            graph.add_node(f"s{i}", node(i))
            graph.add_edge(f"s{i - 1}" if i else START, f"s{i}")
        graph.add_edge("s3", END)
        app = graph.compile(checkpointer=saver)

        def config(run: str) -> dict[str, object]:
            return {"configurable": {"thread_id": run}}

        async def go(run: str, given: State | None) -> None:
            await app.ainvoke(given, config(run), durability="sync")
            note(run, "done")

        async def resume(run: str) -> None:
            if (await app.aget_state(config(run))).next:
                await go(run, None)
            else:
                note(run, "done")

        async def watch() -> None:
            while not gate.exists():  # noqa: ASYNC110, ASYNC240 another process makes it
                await asyncio.sleep(0.005)
            opened.set()

        watcher = asyncio.create_task(watch())
        if again:
            found = await saver.conn.execute("SELECT DISTINCT thread_id FROM checkpoints")
            await asyncio.gather(*(resume(row[0]) for row in await found.fetchall()))
        else:
            await asyncio.gather(*(go(f"r{i}", {"run": f"r{i}"}) for i in range(count)))
        await watcher
        await asyncio.sleep(600)


asyncio.run(main())
