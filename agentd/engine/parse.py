"""Reading text as data: JSON, YAML, CSV, lines; pure. Every function raises ValueError with a reason."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any


def parse(text: str, format: str) -> Any:
    """`text` as a JSON value; `format` is json, yaml, csv (objects by the header row) or lines."""
    return _READERS[format](text)


def _json(text: str) -> Any:
    def refuse(word: str) -> Any:
        raise ValueError(f"no JSON: {word} is no number")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("no JSON: nested too deeply") from None


def _yaml(text: str) -> Any:
    import yaml

    try:
        value = yaml.load(text, Loader=_loader())  # a safe loader without aliases
    except yaml.YAMLError as e:
        raise ValueError(f"no YAML: {' '.join(str(e).split())}") from e
    except RecursionError:
        raise ValueError("no YAML: nested too deeply") from None
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as e:
        raise ValueError(f"the YAML holds what JSON cannot: {e}") from e


def _loader() -> Any:
    """YAML with 1.2's bools, dates as text, and no aliases: a few lines of those can fill the memory."""
    import re

    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    Loader.yaml_implicit_resolvers = {
        first: [
            (tag, rule) for tag, rule in rules if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
        ]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
    )
    return Loader


def _csv(text: str) -> list[dict[str, str]]:
    try:
        rows = [row for row in csv.reader(text.splitlines(keepends=True), strict=True) if row]
    except csv.Error as e:
        raise ValueError(f"no CSV: {e}") from e
    if not rows:
        return []
    header = rows[0]
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise ValueError(f"no CSV: row {number} has {len(row)} fields, the header has {len(header)}")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def _lines(text: str) -> list[str]:
    return text.splitlines()


_READERS: dict[str, Callable[[str], Any]] = {"json": _json, "yaml": _yaml, "csv": _csv, "lines": _lines}
