"""`--effective-config`: the document as assembled and who set what, with every credential hidden."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentd.config.secrets import credential_place, is_reference
from agentd.config.syntax import Where
from agentd.security.redaction import HIDDEN, secret_name

if TYPE_CHECKING:
    from agentd.config.load import Loaded

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


def effective(loaded: Loaded) -> dict[str, Any]:
    """`config` is typed and complete when the document is valid, else as it was assembled."""
    secret: set[Where] = {option.at for option in loaded.table.options if option.secret}
    value = loaded.document.model_dump(mode="json") if loaded.document else loaded.value
    if loaded.document and "vars" in loaded.value:
        value["vars"] = loaded.value["vars"]
    return {
        "valid": not loaded.errors,
        "files": loaded.files,
        "config": redacted(value, secret),
        "sources": loaded.sources,
        "findings": [finding._asdict() for finding in loaded.findings],
    }


def redacted(value: Any, secret: set[Where], at: Where = (), hidden: bool = False) -> Any:
    """`value` without credentials; a reference is none and stays."""
    if at:
        hidden = hidden or at in secret or credential_place(at) or secret_name(str(at[-1]))
    if isinstance(value, dict):
        return {key: redacted(below, secret, (*at, key), hidden) for key, below in value.items()}
    if isinstance(value, list):
        return [redacted(below, secret, (*at, index), hidden) for index, below in enumerate(value)]
    if isinstance(value, str):
        return HIDDEN if hidden and value and not is_reference(value) else _USERINFO.sub(f"{HIDDEN}@", value)
    return HIDDEN if hidden and isinstance(value, int | float) and not isinstance(value, bool) else value
