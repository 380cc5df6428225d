"""`emit`: append an event to a declared stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentd.engine.decision import Done, Failed, Outcome

if TYPE_CHECKING:
    from agentd.errors import AgentdError
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kind of this family."""

    async def emit(call: Call) -> Outcome:
        """``{stream, n}`` once the event is durable; the step's key makes a repeated step one event."""
        declared = instance.document.streams
        name = call.fields["stream"] or (next(iter(declared)) if len(declared) == 1 else None)
        if name is None or name not in instance.streams:
            known = ", ".join(sorted(declared)) or "none"
            return Failed("step", f"there is no stream {name or '(none named)'}; declared: {known}", retry=False)
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: AgentdError | None) -> None:
            if not durable.done():
                durable.set_result(None) if error is None else durable.set_exception(error)

        key = call.fields["key"] or call.key
        n = instance.streams.append(name, call.fields["subject"] or "", call.fields["payload"], done, key=key)
        await durable
        return Done({"stream": name, "n": n})

    return {"emit": emit}
