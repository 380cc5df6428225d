"""The final answer: text, or JSON that meets a schema. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentd.errors import ConfigError

_FENCE = re.compile(r"\A\s*```[a-zA-Z0-9_-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_SHOWN = 5
"""Problems told to the model at once."""


class Answer:
    """Reads answers against `schema`, or takes any text when there is none.

    Nothing is fetched: a schema that refers to another place is a ConfigError when it is first used.
    """

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self.schema = schema
        self._validator: Any = None

    def read(self, text: str) -> tuple[Any, list[str]]:
        """The value `text` stands for, and what is wrong with it."""
        if self.schema is None:
            return text, []
        try:
            value = _parse(text)
        except (ValueError, RecursionError) as e:
            return None, [f"the answer is no JSON: {e}"]
        return value, self.problems(value)

    def accept(self, value: Any) -> tuple[Any, list[str]]:
        """The value given to `finish`: as it is, or as the JSON that a string of it holds."""
        problems = self.problems(value)
        if problems and isinstance(value, str):
            parsed, others = self.read(value)
            if not others:
                return parsed, []
        return value, problems

    def problems(self, value: Any) -> list[str]:
        """Why `value` does not meet the schema, as ``path: message``; empty when it does."""
        if self.schema is None:
            return []
        errors = self._compiled().iter_errors(value)
        found = []
        for error in errors:
            path = "/".join(str(p) for p in error.instance_path)
            found.append(f"{path}: {error.message}" if path else str(error.message))
            if len(found) == _SHOWN:
                break
        return found

    def _compiled(self) -> Any:
        if self._validator is None:
            import jsonschema_rs

            # A linear-time regular expression engine, and no reference leaves the document.
            options = jsonschema_rs.RegexOptions()
            schema = dict(self.schema or {})
            try:
                self._validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=options)
            except ValueError as e:
                raise ConfigError(f"output_schema cannot be used: {e}") from e
        return self._validator


def _parse(text: str) -> Any:
    fenced = _FENCE.match(text)
    return json.loads(fenced[1] if fenced else text, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")
