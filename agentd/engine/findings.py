"""What is wrong with a definition, as ``(path, message)`` pairs; pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Finding = tuple[str, str]
M = TypeVar("M", bound=BaseModel)


class Findings:
    """Collects findings, each once, in the order they are met."""

    def __init__(self) -> None:
        self._found: dict[Finding, None] = {}

    def add(self, path: str, message: str) -> None:
        self._found[path, message] = None

    def listed(self) -> list[Finding]:
        return list(self._found)

    def read(self, model: type[M], data: dict[str, Any], path: str, what: str) -> M | None:
        """`data` as a `model`, or None and the reasons among the findings. `what` names the owner of a field."""
        try:
            return model.model_validate(data)
        except ValidationError as e:
            for error in e.errors(include_url=False, include_input=False):
                self.add(_place(error, data, path), _say(error, model, what))
            return None


def _place(error: ErrorDetails, data: Any, path: str) -> str:
    """The path of the offending value; pydantic's own steps (union members, validators) are left out."""
    loc = error["loc"]
    for position, segment in enumerate(loc):
        last = position == len(loc) - 1 and error["type"] == "missing"
        if isinstance(data, dict) and (segment in data or last):
            path, data = join(path, str(segment)), data.get(str(segment))
        elif isinstance(data, list) and isinstance(segment, int) and segment < len(data):
            path, data = f"{path}[{segment}]", data[segment]
    return path


def _say(error: ErrorDetails, model: type[BaseModel], what: str) -> str:
    if error["type"] == "missing":
        return "required"
    if error["type"] == "extra_forbidden":
        known = [info.alias or name for name, info in model.model_fields.items()]
        nested = len(error["loc"]) > 1
        return "unknown field" if nested else f"unknown field of {what}{near(str(error['loc'][-1]), known)}"
    return error["msg"].removeprefix("Value error, ")


def near(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` when something known is close to `word`."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def join(path: str, segment: str) -> str:
    return f"{path}.{segment}" if path else segment
