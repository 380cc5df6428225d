"""Whatever fails and when: nothing acknowledged is lost or undone, nothing refused comes back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentd.errors import StoreError
from agentd.journal.delivery import Health
from agentd.journal.journal import Journal, Record, Settings

from .flaky import Clock, Events, Flaky, breathe

records = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=3, unique_by=lambda change: change[0]
)
acts = st.lists(
    st.one_of(
        records,  # a write of several keys, True sets, False removes
        st.sampled_from(["break", "mend", "fail once", "wait", "wait long", "restart"]),
    ),
    max_size=25,
)


def stored(store: Flaky) -> dict[str, Any]:
    found = (json.loads(text) for _, text in store._records.values())
    return {e["id"]: e["state"]["n"] for e in found if e["kind"] == "artifact"}


def expected(acknowledged: dict[int, list[tuple[str, bool]]]) -> dict[str, int]:
    """What must be there: of each key the last acknowledged change, in the order of the writes."""
    last = {key: (n, present) for n, changes in sorted(acknowledged.items()) for key, present in changes}
    return {key: n for key, (n, present) in last.items() if present}


async def play(script: list[Any], on_error: Any, pause: bool) -> None:
    store, clock, log = Flaky(), Clock(), Events()

    async def begin() -> Journal:
        journal = Journal(store, Settings(instance="i", on_error=on_error), clock=clock, log=log)
        await journal.open()
        return journal

    journal = await begin()
    acknowledged: dict[int, list[tuple[str, bool]]] = {}

    for n, act in enumerate(script):
        if isinstance(act, list):
            batch: list[Record] = [("artifact", key, {"n": n} if present else None) for key, present in act]
            journal.write(batch, lambda error, act=act, n=n: error or acknowledged.update({n: act}))
            if pause:
                await breathe()
        elif act == "break":
            store.broken = StoreError("broken")
        elif act == "mend":
            store.broken = None
        elif act == "fail once":
            store.failures.append(StoreError("once"))
        elif act == "wait":
            await breathe()
        elif act == "wait long":
            await clock.advance(6)
        else:
            store.broken, store.failures = None, []
            await clock.advance(20)
            await journal.close()
            journal = await begin()
    store.broken, store.failures = None, []
    await clock.advance(20)
    await journal.settled()
    assert journal.health is not Health.FENCED and "store.conflict" not in log.names
    assert stored(store) == expected(acknowledged)
    await journal.close()


@given(acts, st.booleans())
def test_degraded_or_not_everything_acknowledged_arrives(script: list[Any], pause: bool) -> None:
    asyncio.run(play(script, "degrade", pause))


@given(acts, st.booleans())
def test_halting_what_was_refused_is_not_there(script: list[Any], pause: bool) -> None:
    asyncio.run(play(script, "halt", pause))
