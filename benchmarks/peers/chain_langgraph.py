"""LangGraph with its SQLite saver, durability "sync": one node COUNT times. Argument: COUNT."""

import os
import sys
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from measure import Meter, emit

root, count = os.environ["BENCH_DATA"], int(sys.argv[1])


class State(TypedDict):
    n: int
    until: int


with SqliteSaver.from_conn_string(f"{root}/db.sqlite") as saver:
    graph = StateGraph(State)
    graph.add_node("a", lambda s: {"n": s["n"] + 1})
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda s: "a" if s["n"] < s["until"] else END, ["a", END])
    app = graph.compile(checkpointer=saver)

    def run(thread: str, n: int) -> None:
        config = {"configurable": {"thread_id": thread}, "recursion_limit": n + 10}
        app.invoke({"n": 0, "until": n}, config, durability="sync")

    run("warm", 5)
    meter = Meter(root).start()
    run("chain", count)
    emit(meter.stop(count))
