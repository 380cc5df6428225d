"""Fields that are imported when a workflow uses their kind.

Declaring fifty pydantic models costs more than the rest of a probe together, and most instances use five of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pydantic import BaseModel


class _Late:
    """Stands for a class: every attribute is the class's own."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(getattr(importlib.import_module(self._module), self._name), attribute)

    def __repr__(self) -> str:
        return f"<{self._module}.{self._name}>"


def late(where: str) -> type[BaseModel]:
    """``<family>.<Model>``: that model of ``agentd.builtin.fields_<family>``, imported at its first use."""
    family, _, name = where.partition(".")
    return cast("type[BaseModel]", _Late(f"agentd.builtin.fields_{family}", name))
