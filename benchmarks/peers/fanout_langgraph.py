"""LangGraph with its asynchronous SQLite saver: COUNT threads of one node at once. Argument: COUNT."""

import asyncio
import os
import sys
from typing import TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from measure import Meter, emit

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])


class State(TypedDict):
    n: int


async def node(state: State) -> State:
    return {"n": state["n"] + 1}


async def main() -> None:
    async with AsyncSqliteSaver.from_conn_string(f"{root}/db.sqlite") as saver:
        await saver.setup()
        graph = StateGraph(State)
        graph.add_node("a", node)
        graph.add_edge(START, "a")
        graph.add_edge("a", END)
        app = graph.compile(checkpointer=saver)

        async def one(i: int) -> None:
            await app.ainvoke({"n": i}, {"configurable": {"thread_id": f"t{i}"}}, durability="sync")

        await one(-1)
        meter = Meter(root).start()
        await asyncio.gather(*map(one, range(count)))
        emit(meter.stop(count))


asyncio.run(main())
