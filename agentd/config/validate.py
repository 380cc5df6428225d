"""An assembled tree to a document, with every finding at its path and naming who set it."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentd.config.document import Document
from agentd.config.files import Tree
from agentd.config.findings import Finding, dotted
from agentd.config.shapes import Report, Shape, coerce, fields_of
from agentd.config.syntax import Where


def validate(tree: Tree, value: dict[str, Any], model: type[Document]) -> tuple[Document | None, list[Finding]]:
    """The document, or None with the reasons. `value` is the tree's with the constants substituted."""
    findings: dict[Where, Finding] = {}

    def report(at: Where, message: str) -> None:
        source = tree.source(at)
        findings.setdefault(at, Finding("error", dotted(at), message + (f" ({source})" if source else "")))

    shaped = coerce(value, Shape("object", "an object", model=model), (), report)
    document = _document(shaped, model, report, findings)
    return (None if findings else document), list(findings.values())


def _document(
    shaped: dict[str, Any], model: type[Document], report: Report, findings: dict[Where, Finding]
) -> Document | None:
    """Section by section: the validators of those that are not written are never built."""
    made: dict[str, Any] = {}
    for name, shape in fields_of(model).items():
        if name not in shaped:
            continue
        try:
            made[name] = _section(shaped[name], shape)
        except ValidationError as fault:
            for error in fault.errors(include_url=False, include_context=True):
                at = (name, *_locate(_inner(error["loc"], shape), shaped[name], error["type"]))
                if not any(at[: len(seen)] == seen for seen in findings):
                    report(at, _said(error))
    return None if findings else model.model_construct(**made)


def _section(value: Any, shape: Shape) -> Any:
    if shape.model is not None:
        return shape.model.model_validate(value)
    if shape.kind == "map" and shape.item and shape.item.model and isinstance(value, dict):
        return TypeAdapter(dict[str, shape.item.model]).validate_python(value)  # type: ignore[name-defined]
    return value


def _inner(loc: tuple[str | int, ...], shape: Shape) -> tuple[str | int, ...]:
    """A location below the section, without the mark pydantic puts on the keys of a map."""
    return loc[:-1] if shape.kind == "map" and loc[-1:] == ("[key]",) else loc


def _locate(loc: tuple[str | int, ...], value: Any, kind: str) -> Where:
    """Where an error is, without the names of union members that pydantic puts in between."""
    at: list[str | int] = []
    for index, key in enumerate(loc):
        here = isinstance(value, dict) and key in value
        there = isinstance(value, list) and isinstance(key, int) and key < len(value)
        if here or there:
            at.append(key)
            value = value[key]
        elif index == len(loc) - 1 and kind in ("missing", "extra_forbidden"):
            at.append(key)
    return tuple(at)


def _said(error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    match error["type"]:
        case "missing":
            return "is required"
        case "string_pattern_mismatch":
            return f"does not have the form {error['ctx']['pattern']}"
    return message[:1].lower() + message[1:]
