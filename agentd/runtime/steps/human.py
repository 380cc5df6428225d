"""`human`: a question to a person; the step waits as long as its timeout says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentd.ports.nodes import Suspend
from agentd.runtime.gates import task_of

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kind of this family."""

    def human(call: Call) -> Suspend:
        """The reply."""
        now, timeout, task = instance.clock.now(), call.effect.timeout, task_of(call.key)
        question = {**{word: call.fields[word] for word in ("question", "schema", "to")}, "asked": now}
        until = None if timeout is None else now + timeout
        about = {"run": call.run_id, "step": call.step_id, "workflow": call.workflow, "until": until}
        call.also.append(("gate", task, {**question, **about}))
        deadline = None if timeout is None else int(timeout * 1000)
        call.log("human.ask", task=task, question=question["question"], deadline_ms=deadline)
        return Suspend(on={"gate": task, **question}, until=until)

    return {"human": human}
