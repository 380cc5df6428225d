"""The steps that are computed in place; pure.

`DATA` maps a kind to ``(rendered fields, step) -> output``; `CONTROL` to ``(fold, step) -> output`` for the kinds that
touch the run. A :class:`StepError` or a ValueError fails the step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agentd.engine.parse import parse
from agentd.engine.paths import Missing, With, down, parse_path
from agentd.engine.schemas import Schema
from agentd.engine.state import Step
from agentd.engine.template import to_text

if TYPE_CHECKING:
    from agentd.engine.fold import Fold


class StepError(Exception):
    """A computed step fails with a code of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


Fields = dict[str, Any]


def _over(fields: Fields) -> list[Any]:
    over = fields["over"]
    if not isinstance(over, list):
        raise ValueError(f"over must be a list, got {type(over).__name__}")
    return over


def _each(fields: Fields, step: Step) -> Iterator[tuple[Any, With]]:
    """Each element of `over`, with the names it is seen by."""
    name = fields.get("as")
    for index, item in enumerate(_over(fields)):
        more = {"item": item, "index": index}
        if name:
            more[name] = item
        yield item, With(step.scope, more)


def _map(fields: Fields, step: Step) -> list[Any]:
    get = step.node.items.get("expression")
    if get is None:
        return [fields["expression"] for _ in _over(fields)]
    return [get(names) for _, names in _each(fields, step)]


def _filter(fields: Fields, step: Step) -> list[Any]:
    test = step.node.tests["expression"]
    return [item for item, names in _each(fields, step) if test(names)]


def _reduce(fields: Fields, step: Step) -> Any:
    acc = fields["initial"]
    get = step.node.items.get("expression")
    for _, names in _each(fields, step):
        acc = get(With(names, {"acc": acc})) if get is not None else fields["expression"]
    return acc


def _at(item: Any, by: str | None) -> Any:
    """The value of the path `by` inside `item`; null when there is none."""
    if not by:
        return item
    value = item
    path = ("item", *parse_path(by))
    try:
        for segment in path[1:]:
            value = down(value, segment, path)
    except Missing:
        return None
    return value


def _rank(value: Any) -> tuple[int, Any]:
    """A total order over JSON values: null, bools, numbers, texts, the rest by their JSON."""
    if value is None:
        return 0, 0
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    if isinstance(value, str):
        return 3, value
    return 4, json.dumps(value, sort_keys=True)


def _sort(fields: Fields, step: Step) -> list[Any]:
    by = fields["by"]
    return sorted(_over(fields), key=lambda item: _rank(_at(item, by)), reverse=fields["order"] == "desc")


def _dedupe(fields: Fields, step: Step) -> list[Any]:
    return _distinct(_over(fields), fields["by"])


def _distinct(elements: list[Any], by: str | None) -> list[Any]:
    seen: set[tuple[int, Any]] = set()
    kept = []
    for item in elements:
        mark = _rank(_at(item, by))
        if mark not in seen:
            seen.add(mark)
            kept.append(item)
    return kept


def _chunk(fields: Fields, step: Step) -> list[list[Any]]:
    elements, size = _over(fields), fields["size"]
    return [elements[i : i + size] for i in range(0, len(elements), size)]


def _template(fields: Fields, step: Step) -> Any:
    return fields["template"]


def _parse(fields: Fields, step: Step) -> Any:
    text = fields["text"]
    if not isinstance(text, str):
        raise ValueError(f"text must be a text, got {type(text).__name__}")
    return parse(text, fields["format"])


def _validate(fields: Fields, step: Step) -> Any:
    problem = Schema(fields["schema"]).problem(fields["value"])
    if problem is not None:
        raise StepError("validate", problem)
    return fields["value"]


def _noop(fields: Fields, step: Step) -> None:
    return None


def _fail(fields: Fields, step: Step) -> Any:
    raise StepError(fields["code"], fields["message"])


def _assert(fields: Fields, step: Step) -> bool:
    if not step.node.tests["condition"](step.scope):
        raise StepError("assert", fields["message"] or "the condition does not hold")
    return True


def _switch(fold: Fold, step: Step) -> dict[str, Any]:
    fields, ids = step.fields, step.scope.graph.ids
    value = fields["on"]
    targets = fields["cases"].get(to_text(value), fields["default"])
    chosen = [targets] if isinstance(targets, str) else list(targets or ())
    step.took = frozenset(ids[id] for id in chosen)
    return {"on": value, "to": chosen}


def _checkpoint(fold: Fold, step: Step) -> None:
    fold.decision.records.append((step.entry, {"status": "done", "at": fold.now}))
    fold.decision.flush = True


def _assign(fold: Fold, step: Step) -> Any:
    fields, state = step.fields, fold.state
    name, value = fields["writes"], fields["value"]
    if name is None:
        return value
    declared = state.plan.workflow.state.get(name)
    mode = fields["mode"] or (declared.reducer if declared is not None else "overwrite")
    joined = reduced(mode, state.vars.get(name), value)
    if declared is not None:
        problem = Schema(declared.schema_).problem(joined)
        if problem is not None:
            raise StepError("assign", f"vars.{name} does not meet its schema: {problem}")
    state.vars[name] = joined
    return value


def reduced(mode: str, before: Any, value: Any) -> Any:
    """What a run variable becomes; never changes `before`. Raises ValueError when the two cannot be joined."""
    if mode == "overwrite":
        return value
    if mode == "merge":
        if not isinstance(before, dict | None) or not isinstance(value, dict):
            raise ValueError("merge joins objects")
        return {**(before or {}), **value}
    if not isinstance(before, list | None):
        raise ValueError(f"{mode} joins lists")
    if mode == "append":
        return [*(before or ()), value]
    more = value if isinstance(value, list) else [value]
    return _distinct([*(before or ()), *more], None)


DATA: dict[str, Callable[[Fields, Step], Any]] = {
    "map": _map, "filter": _filter, "reduce": _reduce, "sort": _sort, "dedupe": _dedupe, "chunk": _chunk,
    "template": _template, "parse": _parse, "validate": _validate, "noop": _noop, "fail": _fail, "assert": _assert,
}  # fmt: skip
CONTROL: dict[str, Callable[[Fold, Step], Any]] = {"switch": _switch, "assign": _assign, "checkpoint": _checkpoint}
