"""One setting by a variable or a flag, and applying it to the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from agentd.config.files import Tree
from agentd.config.findings import Finding
from agentd.config.paths import Option, Table
from agentd.config.secrets import Literals
from agentd.config.shapes import Shape, coerce, from_text
from agentd.config.syntax import Where


class Setting(NamedTuple):
    """`text` for the option at `path` (or for the key `key` of that map), as `name` says it on `layer`."""

    layer: str
    name: str
    path: str
    text: str
    key: str = ""
    adds: bool = False


def apply(settings: list[Setting], tree: Tree, table: Table, literals: Literals) -> list[Finding]:
    """Set each in turn; the later wins."""
    findings: list[Finding] = []
    for setting in settings:
        option = table.by_path.get(setting.path)
        if option is None:
            wrong = f"{setting.name} sets {setting.path}, which no installed plugin serves; see `agentd plugins`"
            findings.append(Finding("error", setting.path, wrong))
            continue
        try:
            _apply(setting, option, tree, literals)
        except ValueError as fault:
            findings.append(Finding("error", setting.path, f"invalid {setting.name}: {fault}"))
    return findings


def _apply(setting: Setting, option: Option, tree: Tree, literals: Literals) -> None:
    source = f"{setting.layer} {setting.name}"
    if setting.adds:
        _add(setting, option, tree, source)
        return
    at: Where = (*option.at, setting.key) if setting.key else option.at
    shape = (option.shape.item or Shape("any", "a value")) if setting.key else option.shape
    value = _coerced(setting.text, shape)
    value = literals.hide(value, at, secret=option.secret, source=setting.name)
    if option.replaces:
        _make_room(tree.value, option)
    if isinstance(value, dict) and shape.kind == "object":
        tree.merge(_nested(at, value), source, {})
    else:
        tree.set(at, value, source)


def _nested(at: Where, value: Any) -> dict[str, Any]:
    for key in reversed(at):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def _coerced(text: str, shape: Shape) -> Any:
    """Raises ValueError with the first thing that does not fit."""
    faults: list[str] = []

    def report(at: Where, message: str) -> None:
        faults.append(f"{'.'.join(map(str, at))}: {message}" if at else message)

    value = coerce(from_text(text, shape), shape, (), report)
    if faults:
        raise ValueError("; ".join(faults))
    return value


def _make_room(here: Any, option: Option) -> None:
    """`agent.instruction` has one source: to set another one is to replace it."""
    parents, below = option.at[: option.replaces], option.at[option.replaces]
    for key in parents[:-1]:
        here = here.get(key) if isinstance(here, Mapping) else None
    if isinstance(here, dict) and below not in (here.get(parents[-1]) or {}):
        here.pop(parents[-1], None)


def _add(setting: Setting, option: Option, tree: Tree, source: str) -> None:
    """One more element; an element of the same name is replaced."""
    if setting.path == "workflows":
        element: dict[str, Any] = {"file": setting.text}
    else:
        name, separator, url = setting.text.partition("=")
        if not separator or not name.strip() or not url.strip():
            raise ValueError(f'expected NAME=URL, got "{setting.text}"')
        element = {"name": name.strip(), "endpoint": url.strip()}
    here: Any = tree.value
    for key in option.at:
        here = here.get(key) if isinstance(here, dict) else None
    kept = [
        e for e in here or [] if not isinstance(e, dict) or "name" not in element or e.get("name") != element["name"]
    ]
    marks = {
        at: who
        for at, who in tree.sources.items()
        if at[: len(option.at)] == option.at and len(kept) == len(here or [])
    }
    tree.set(option.at, [*kept, element], source)
    tree.sources.update(marks)
    tree.sources[(*option.at, len(kept))] = source
