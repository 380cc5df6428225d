"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentd.config.load import Loaded, load


def no_plugins(allow: Sequence[str] | None, disabled: Sequence[str]) -> Any:
    """A set in which everything is missing but the kernel's two stores and the `static` scheme."""
    none = SimpleNamespace(options=SimpleNamespace(model_fields={}), kind="none", describe=None)
    memory = SimpleNamespace(options=none.options, kind="memory", describe=None)
    return SimpleNamespace(
        stores={"none": none, "memory": memory},
        dialects={},
        auth_schemes={},
        start_nodes={},
        step_nodes={},
        schedule_rules={},
        installed=(),
        missing=lambda slot, kind: f"{slot} {kind!r} is not installed: pip install 'agentd[{kind}]'",
    )


class Loading:
    """Loads a command line in a directory of its own, without installed plugins."""

    def __call__(
        self, tmp_path: Path, *args: str, env: Mapping[str, str] | None = None, text: str | None = None
    ) -> Loaded:
        """`text` stands in a named file when given."""
        argv = list(args)
        if text is not None:
            (tmp_path / "named.yaml").write_text(text)
            argv = ["--config", "named.yaml", *argv]
        return load(argv, env or {}, tmp_path, load_plugins=no_plugins)

    def told(self, configuration: Loaded) -> str:
        """Every finding as ``path: message``, one a line."""
        return "\n".join(f"{finding.path}: {finding.msg}" for finding in configuration.findings)


@pytest.fixture
def loaded() -> Loading:
    return Loading()
