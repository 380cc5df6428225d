"""The kernel's document with what installed plugins mount in it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, create_model

from agentd.config.document import Document, StoreSection

if TYPE_CHECKING:
    from agentd.plugins import PluginSet


def compose(plugins: PluginSet) -> type[Document]:
    """The class of the whole document: each kind of store that has options mounts them at ``store.<kind>``."""
    return _composed(tuple((s.kind, s.options) for s in plugins.stores.values() if s.options.model_fields))


@lru_cache(maxsize=8)
def _composed(stores: tuple[tuple[str, type[BaseModel]], ...]) -> type[Document]:
    if not stores:
        return Document
    mounts: dict[str, Any] = {kind: (options | None, _mount(kind)) for kind, options in stores}
    section = create_model("StoreSection", __base__=StoreSection, __module__=__name__, **mounts)
    whole = Field(
        default_factory=section, description="where durable state lives", json_schema_extra={"reload": "restart"}
    )
    return create_model("Document", __base__=Document, __module__=__name__, store=(section, whole))


def _mount(kind: str) -> Any:
    return Field(None, description=f"options of the store {kind}", json_schema_extra={"reload": "restart"})
