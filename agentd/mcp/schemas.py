"""Judges and repairs one tool's input schema so that no model provider refuses the whole request for it; pure.

A schema passes through as it is unless something is known to be refused. What can be repaired without changing what
the tool accepts, or by accepting more (the server judges its own arguments), is; the rest is hopeless. A reference is
never fetched: one that leads out of the schema, or nowhere, becomes "anything".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = dict[str, Any]

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
MAX_DEPTH = 64
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_TOP = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else")


class Hopeless(Exception):
    """The schema cannot be made one a provider takes; the message says why."""


def repair_input_schema(schema: Any) -> tuple[Schema, list[str]]:
    """The schema as a provider takes it, and what was repaired (empty: nothing). Raises :class:`Hopeless`."""
    notes: list[str] = []
    if schema is None:
        return {"type": "object", "properties": {}}, ["it has no input schema: it takes no arguments"]
    if not isinstance(schema, dict):
        raise Hopeless(f"its input schema is no object but {type(schema).__name__}")
    root = _inline_root(schema, notes)
    if root.get("type", "object") not in ("object", ["object"], ["object", "null"]):
        raise Hopeless(f"its input schema describes no object but {root['type']!r}")
    root = _Repair(root, notes).run(root, 0)
    if any(key in root for key in _TOP):
        root = _Repair(flat := _flatten(root, notes), notes).run(flat, 0)  # a reference into what was folded is lost
    root["type"] = "object"
    root.setdefault("properties", {})
    root.pop("$schema", None)
    return root, notes


def _inline_root(schema: Schema, notes: list[str]) -> Schema:
    """A root that is only a reference into itself, replaced by what it names."""
    ref = schema.get("$ref")
    if ref is None:
        return dict(schema)
    target = resolve(schema, ref)
    if target is None or target is schema:
        raise Hopeless(f"its input schema is a reference that leads nowhere: {ref!r}")
    notes.append("the reference at the root was replaced")
    kept = {k: v for k, v in schema.items() if k != "$ref"}
    return {**kept, **target}


def resolve(root: Schema, ref: Any) -> Schema | None:
    """What the local pointer `ref` names in `root`, None for anything else."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    here: Any = root
    for part in ref[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, dict) and key in here:
            here = here[key]
        else:
            return None
    return here if isinstance(here, dict) else None


class _Repair:
    """One walk over a schema; `root` is what references are looked up in."""

    def __init__(self, root: Schema, notes: list[str]) -> None:
        self._root, self._notes = root, notes

    def run(self, schema: Any, depth: int) -> Schema:
        """`schema` with its parts repaired; a boolean schema becomes the object that says the same."""
        if depth > MAX_DEPTH:
            raise Hopeless(f"its input schema is nested deeper than {MAX_DEPTH}")
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            raise Hopeless(f"its input schema holds {type(schema).__name__} where a schema belongs")
        ref = schema.get("$ref")
        if ref is not None and resolve(self._root, ref) is None:
            self._notes.append(f"the reference {ref!r} is not followed: anything is accepted there")
            schema = {k: v for k, v in schema.items() if k != "$ref"}
        out = {k: v for k, v in schema.items() if v is not None or k in ("default", "const")}
        self._words(out)
        for key in _NAMED:
            if key in out:
                out[key] = {name: self.run(part, depth + 1) for name, part in self._table(key, out[key]).items()}
        for key in _MANY:
            if key in out:
                if not isinstance(out[key], list):
                    raise Hopeless(f"its {key} is no list")
                out[key] = [self.run(part, depth + 1) for part in out[key]]
        for key in _ONE:
            if key in out and not isinstance(out[key], bool):
                out[key] = self._one(key, out[key], depth)
        if out.get("type") == "array" and "items" not in out and "prefixItems" not in out:
            out["items"] = {}
        return out

    def _one(self, key: str, part: Any, depth: int) -> Any:
        if key == "additionalProperties" and part == {}:
            return True
        if key == "items" and isinstance(part, list):  # draft 7's tuples: any member's schema serves
            return {"anyOf": [self.run(p, depth + 1) for p in part]} if part else {}
        return self.run(part, depth + 1)

    def _table(self, key: str, table: Any) -> Mapping[str, Any]:
        if table == []:  # an empty map, from a language that cannot tell
            self._notes.append(f"its {key} is an empty list: taken as none")
            return {}
        if not isinstance(table, dict):
            raise Hopeless(f"its {key} is no object but {type(table).__name__}")
        return table

    def _words(self, out: Schema) -> None:
        """Repairs the keywords of one level in place."""
        if "required" in out:
            if not isinstance(out["required"], list):  # draft 3 wrote a boolean beside each property
                del out["required"]
                self._notes.append("its `required` is no list: left out")
            else:
                out["required"] = [name for name in out["required"] if isinstance(name, str)]
        if "type" in out and not set(_listed(out["type"])) <= TYPES:
            self._notes.append(f"the type {out['type']!r} is unknown: any is accepted there")
            del out["type"]
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(out.get(exclusive), bool):  # draft 4
                if out.pop(exclusive) and bound in out:
                    out[exclusive] = out.pop(bound)
                self._notes.append(f"`{exclusive}` was rewritten from draft 4")


def _listed(kinds: Any) -> Iterator[str]:
    yield from (str(k) for k in kinds) if isinstance(kinds, list) else (str(kinds),)


def _flatten(root: Schema, notes: list[str]) -> Schema:
    """`root` without the combinators that providers refuse at the top: every branch's properties, required by all."""
    notes.append(f"{', '.join(key for key in _TOP if key in root)} at the top was folded into one object")
    out = {k: v for k, v in root.items() if k not in _TOP}
    required = set(out.get("required", ()))
    properties = dict(out.get("properties", {}))
    for key in ("allOf", "anyOf", "oneOf"):
        branches = [_followed(root, b) for b in root.get(key, ())]
        for branch in branches:
            properties = {**branch.get("properties", {}), **properties}
        wanted = [set(b.get("required", ())) for b in branches]
        if wanted:
            required |= set.union(*wanted) if key == "allOf" else set.intersection(*wanted)
    out["properties"] = properties
    if required:
        out["required"] = sorted(required)
    return out


def _followed(root: Schema, branch: Schema) -> Schema:
    return (resolve(root, branch["$ref"]) or {}) if "$ref" in branch else branch
