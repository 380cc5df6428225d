"""Write the tables of `docs/workflows.md` from what the kinds declare; ``--check`` fails when they are out of date."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def reference() -> str:
    """The tables: the keys of a workflow, the fields of every step and start node, the kernel's kinds."""
    from agentd.engine.document import Common, Retry, StartCommon, Workflow
    from agentd.testing.runs import kernel_kinds

    kinds = kernel_kinds()
    parts = ["## Reference\n", "### A workflow\n", fields_table(Workflow), "### Every step\n", fields_table(Common)]
    parts += ["`retry`:\n", fields_table(Retry), "### Every start node\n", fields_table(StartCommon)]
    parts += ["### Start nodes of the kernel\n", kinds_table(kinds.starts.values())]
    parts += ["### Steps of the kernel\n", kinds_table(kinds.steps.values())]
    return "\n".join(parts)


def fields_table(model: Any) -> str:
    rows = [f"| `{name}` | {_words(info)} |" for name, info in _fields(model)]
    return "\n".join(["| key | what |", "| --- | --- |", *rows, ""])


def kinds_table(specs: Iterable[Any]) -> str:
    rows = []
    for spec in sorted(specs, key=lambda spec: spec.kind):
        fields = [f"`{name}`{'*' if info.is_required() else ''} {_words(info)}" for name, info in _fields(spec.fields)]
        rows.append(f"| `{spec.kind}` | {spec.help} | {' · '.join(fields)} |")
    return "\n".join(["| kind | does | fields (* required) |", "| --- | --- | --- |", *rows, ""])


def _fields(model: Any) -> list[tuple[str, Any]]:
    return [(info.alias or name, info) for name, info in model.model_fields.items()]


def _words(info: Any) -> str:
    default = info.get_default()
    shown = f" ({default})" if isinstance(default, str | int | float) and default not in ("", None) else ""
    return f"{info.description or ''}{shown.lower() if isinstance(default, bool) else shown}".replace("|", "\\|")


if __name__ == "__main__":
    from reference import marked, write

    sys.exit(write(marked("docs/workflows.md", "workflow_reference", reference()), sys.argv[1:]))
