"""JSON Schema, offline: well-formedness at load, validity at run time; pure."""

from __future__ import annotations

import json
from typing import Any


class Schema:
    """A JSON Schema (2020-12 unless it says otherwise), compiled at first use. Never fetches a remote reference."""

    __slots__ = ("_validator", "document")

    def __init__(self, document: dict[str, Any] | bool) -> None:
        self.document = document
        self._validator: Any = None

    def problem(self, value: Any) -> str | None:
        """Why `value` does not meet the schema, None when it does."""
        if self.document is True or self.document == {}:
            return None
        if self._validator is None:
            self._validator = _compile(self.document)
        for error in self._validator.iter_errors(value):
            where = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in error.instance_path)
            return f"{where.lstrip('.')}: {error.message}" if where else str(error.message)
        return None


def _compile(document: dict[str, Any] | bool) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(document, offline=True, pattern_options=jsonschema_rs.RegexOptions())


def malformed(document: Any) -> str | None:
    """Why `document` is no usable JSON Schema, None when it is."""
    if not isinstance(document, dict | bool):
        return "expected a JSON Schema, an object or a bool"
    try:
        json.dumps(document, allow_nan=False)
        _compile(document)
    except Exception as e:  # the library raises ValidationError, ReferencingError, ValueError and more for bad schemas
        return f"no well-formed JSON Schema: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
    return None
