"""`{{config.NAME}}`: deployment constants of `vars`, substituted at load; pure."""

from __future__ import annotations

import json
import re
from typing import Any

from agentd.config.findings import Finding, dotted, nearest
from agentd.config.secrets import PROSE, REFERENCE
from agentd.config.syntax import Where

_TOKEN = re.compile(r"\{\{\s*config\.([^{}|]*?)\s*\}\}")
_ANY = re.compile(r"\{\{[^{}]*\}\}")
_MISSING = object()


def substitute(document: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """The document with the constants in place, typed where the token stands alone."""
    given = document.get("vars")
    constants = given if isinstance(given, dict) else {}
    findings: list[Finding] = []

    def walk(value: Any, at: Where) -> Any:
        if isinstance(value, dict):
            return {key: walk(below, (*at, key)) for key, below in value.items()}
        if isinstance(value, list):
            return [walk(below, (*at, index)) for index, below in enumerate(value)]
        if not isinstance(value, str) or "{{" not in value:
            return value
        if whole := _TOKEN.fullmatch(value.strip()):
            return constant(whole[1], at)
        text = _TOKEN.sub(lambda m: _text(constant(m[1], at)), value)
        _check_forms(text, at, findings)
        return text

    def constant(name: str, at: Where) -> Any:
        value: Any = constants
        for key in name.split("."):
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            wrong = f"{{{{config.{name}}}}} is not in vars{nearest(name, constants)}"
            findings.append(Finding("error", dotted(at), wrong))
            return ""
        return value

    return {key: below if key == "vars" else walk(below, (key,)) for key, below in document.items()}, findings


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _check_forms(text: str, at: Where, findings: list[Finding]) -> None:
    """Outside workflows and prose, nothing but secrets may stand in double braces."""
    if (
        at[0] == "workflows"
        or any(at[: len(prose)] == prose for prose in PROSE)
        or at[:2] == ("agent", "output_schema")
    ):
        return
    for found in _ANY.findall(text):
        if not REFERENCE.fullmatch(found) or REFERENCE.fullmatch(found)["name"] == "":  # type: ignore[index]
            known = "{{secret:NAME}}, {{secret-file:PATH}} or {{config.NAME}}"
            wrong = f"unknown reference {found}: expected {known}"
            findings.append(Finding("error", dotted(at), wrong))
