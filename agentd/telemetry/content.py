"""What was said, in a log that may not say it: its length and a hash to compare it by."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(field: str, value: Any) -> dict[str, Any]:
    """The fields that stand for content: ``{<field>_bytes, <field>_sha256}``, the hash cut to 16 hex digits.

    Text is measured as UTF-8, anything else as its canonical JSON. None yields nothing.
    """
    if value is None:
        return {}
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    data = text.encode("utf-8", "surrogatepass")
    return {f"{field}_bytes": len(data), f"{field}_sha256": hashlib.sha256(data).hexdigest()[:16]}
