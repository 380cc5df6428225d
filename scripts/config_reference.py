"""Write the reference in `docs/configuration.md` from the composed model; ``--check`` fails when it is out of date.

The model is composed with the plugins of this tree, so that what else is installed on a machine changes nothing.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UNITS = {"duration": ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")), "size": ((1 << 20, "MiB"), (1 << 10, "KiB"))}


def reference() -> str:
    """A table for each section, and one for the elements of each list or map of objects."""
    from agentd.config.compose import compose
    from agentd.config.paths import ALIASES, Table
    from agentd.plugins import load

    model = compose(load(plugin_names()))
    table = Table(model)
    short: dict[str, list[Any]] = {}
    for alias in ALIASES:
        short.setdefault(alias.path, []).append(alias)
    parts = ["## Reference\n", "Every path, of the kernel and of the plugins that come with it.\n"]
    for section in dict.fromkeys(option.at[0] for option in table.options):
        options = [option for option in table.options if option.at[0] == section]
        whole = options[0]
        parts.append(f"### `{section}`\n\n{_sentence(whole.help)}\n")
        shown = [o for o in options if o.shape.kind != "object" or o.shape.model is None or _open(o.shape.model)]
        parts.append(_paths(model, shown, short))
        for option in shown:
            if option.shape.item is not None and option.shape.item.model is not None:
                parts.append(_elements(option.path, option.shape))
    return "\n".join(parts)


def plugin_names() -> list[str]:
    """The entry points of the plugins in this tree."""
    projects = [tomllib.loads(file.read_text())["project"] for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    return [name for project in projects for name in project["entry-points"]["agentd.plugins"]]


def _open(model: Any) -> bool:
    """Whether it takes keys of its own kind, such as `auth`."""
    return bool(model.model_config.get("extra") == "allow")


def _paths(model: Any, options: list[Any], short: dict[str, list[Any]]) -> str:
    rows = [
        f"| `{o.path}` | {_type(o.shape)} | {_default(model, o.at, o.shape)} | {_help(o)} "
        f"| `{_variable(o, short)}` | {_flags(o, short)} |"
        for o in options
    ]
    return "\n".join(["| path | type | default | what | variable | flag |", "| - | - | - | - | - | - |", *rows, ""])


def _elements(path: str, shape: Any) -> str:
    """The fields of what a list or a map holds; they have no variable and no flag of their own."""
    rows = list(_fields(shape.item.model, ()))
    title = f"Each element of `{path}`:" if shape.kind == "list" else f"Each value of `{path}`:"
    return "\n".join([f"{title}\n", "| field | type | default | what |", "| - | - | - | - |", *rows, ""])


def _fields(model: Any, at: tuple[str, ...]) -> Iterator[str]:
    from agentd.config.shapes import fields_of

    for (name, shape), info in zip(fields_of(model).items(), model.model_fields.values(), strict=True):
        here = (*at, name)
        if shape.kind == "object" and shape.model is not None and not _open(shape.model):
            yield from _fields(shape.model, here)
            continue
        default = "required" if info.is_required() else _shown(info.get_default(call_default_factory=True), shape)
        yield f"| `{'.'.join(here)}` | {_type(shape)} | {default} | {_escaped(info.description)} |"


def _type(shape: Any) -> str:
    match shape.kind:
        case "enum":
            return ", ".join(f"`{choice}`" for choice in shape.choices)
        case "list" | "map" if shape.item is not None and shape.item.model is not None:
            return f"{shape.kind} of objects"
        case "list" | "map" if shape.item is not None and shape.item.kind not in ("any", "list"):
            return f"{shape.kind} of {'strings' if shape.item.kind == 'enum' else shape.item.word.split()[-1] + 's'}"
        case "list" | "map":
            return str(shape.kind)
        case "object":
            return "object"
        case "either":
            return "string or object"
        case "parsed":
            return str(shape.word.split()[-1])
        case "any":
            return "any"
    return "boolean" if shape.kind == "boolean" else str(shape.word.split()[-1])


def _default(model: Any, at: tuple[str, ...], shape: Any) -> str:
    """What holds when nobody sets anything; below an object that is then unset, what holds once it is there."""
    from agentd.config.shapes import fields_of

    value = model.model_construct()
    for name in at[:-1]:
        value, inner = getattr(value, name, None), fields_of(model)[name]
        if inner.model is None:
            return ""
        model = inner.model
    info = next(i for n, i in model.model_fields.items() if (i.alias or n) == at[-1])
    if isinstance(value, model):
        return _shown(getattr(value, at[-1]), shape)
    return "required" if info.is_required() else _shown(info.get_default(call_default_factory=True), shape)


def _shown(value: Any, shape: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if shape.kind == "parsed":
        value = _in_units(value, shape.word.split()[-1])
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def _in_units(value: float, word: str) -> str:
    for size, unit in UNITS.get(word, ()):
        if value >= size and value % size == 0:
            return f"{int(value // size)}{unit}"
    return f"{value:g}"


def _variable(option: Any, short: dict[str, list[Any]]) -> str:
    """The short name where the long one is taken by it."""
    taken = {alias.env: alias for aliases in short.values() for alias in aliases}
    alias = taken.get(option.env)
    if alias is not None and alias.path != option.path:
        return "-"
    return f"AGENTD_{option.env}"


def _flags(option: Any, short: dict[str, list[Any]]) -> str:
    names = [f"`--{option.path}`"]
    for alias in short.get(option.path, ()):
        if alias.flag != option.path:
            names.append(f"`--{alias.flag}{' NAME=URL' if alias.adds and option.path != 'workflows' else ''}`")
    return ", ".join(names)


def _help(option: Any) -> str:
    marks = [word for word, on in (("a secret", option.secret), ("not in an unnamed file", option.relaxes)) if on]
    return _escaped(option.help) + (f" ({'; '.join(marks)})" if marks else "")


def _escaped(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "&lt;").replace("$", "\\$")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


if __name__ == "__main__":
    from reference import marked, write

    sys.exit(write(marked("docs/configuration.md", "config_reference", reference()), sys.argv[1:]))
