"""The internal tools that a turn serves itself: `finish`, `think`, `sleep`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agentd.ports.model import ToolSchema
from agentd.turn.answer import Answer
from agentd.turn.rules import Outcome

FINISH, THINK, SLEEP = "finish", "think", "sleep"
_STATUSES = ("completed", "partial", "refused", "failed")
_LONGEST = 3600


def schemas(answer: Answer) -> list[ToolSchema]:
    """The tools as the model sees them; `finish` carries the schema of the answer, if there is one."""
    return [
        ToolSchema(
            name=FINISH,
            description="End the work with a status and its result. Say `partial` when only a part of it succeeded, "
            "`refused` when it cannot or must not be done.",
            parameters=_finish_parameters(answer.schema),
        ),
        ToolSchema(
            name=THINK,
            description="Write a thought down. Nothing else happens.",
            parameters=_object({"thought": {"type": "string"}}, ["thought"]),
        ),
        ToolSchema(
            name=SLEEP,
            description=f"Wait for some seconds, at most {_LONGEST}.",
            parameters=_object({"seconds": {"type": "number", "minimum": 0, "maximum": _LONGEST}}, ["seconds"]),
        ),
    ]


def finish(args: Mapping[str, Any], answer: Answer) -> tuple[Outcome | None, list[str]]:
    """The outcome that `finish` asks for, or why it is not accepted."""
    status, result = args.get("status", "completed"), args.get("result")
    if status not in _STATUSES:
        return None, [f"status is one of {', '.join(_STATUSES)}"]
    if status == "completed":
        value, problems = answer.accept(result)
        return (None, problems) if problems else (Outcome(status=status, output=value), [])
    if status == "partial":
        return Outcome(status=status, output=result), []
    message = result if isinstance(result, str) and result else f"the model ended the work as {status}"
    return Outcome(status=status, output=result, err={"code": status, "message": message}), []


async def sleep(args: Mapping[str, Any]) -> str:
    """Wait as asked. Raises ValueError for what is no number of seconds."""
    seconds = args.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST:
        raise ValueError(f"seconds is a number from 0 to {_LONGEST}")
    await asyncio.sleep(seconds)
    return f"waited {seconds:g} s"


def _finish_parameters(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    result: dict[str, Any] = {"description": "the answer, or the reason"}
    parameters = _object({"status": {"type": "string", "enum": list(_STATUSES)}, "result": result}, ["status"])
    if schema is not None and not any(w in str(schema) for w in ("$ref", "$id", "$anchor", "$dynamicRef")):
        # A schema that refers into itself cannot be nested unchanged; the prompt states it in full anyway.
        result |= {k: v for k, v in schema.items() if k not in ("$schema", "description")}
    return parameters


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}
