"""Which tools may be called, decided by the supervisor."""

from __future__ import annotations

import pytest

from agentd.config.document import Tools
from agentd.runtime.grants import refusal

TOOLS = Tools(disabled=["fs.rm*"], overrides={"fs.put": "other.put", "fs.gone": None})


@pytest.mark.parametrize(
    ("tool", "granted", "may"),
    [
        ("fs.get", ["*"], True),
        ("fs.get", ["fs.*"], True),
        ("fs.get", ["web.*"], False),
        ("fs.get", [], False),
        ("fs.rm", ["*"], False),
        ("fs.rmdir", ["fs.rmdir"], False),
        ("other.put", ["fs.*"], True),
        ("other.get", ["fs.*"], False),
        ("FS.get", ["fs.*"], False),
    ],
)
def test_the_grant_counts(tool: str, granted: list[str], may: bool) -> None:
    assert (refusal(tool, granted, TOOLS) is None) is may
