"""The flags that look and print and change nothing: no instruction needed, exit 0 (2 for findings)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentd import __version__
from agentd.cli.output import emit, tell
from agentd.errors import EXIT_CONFIG, EXIT_OK, ConfigError

if TYPE_CHECKING:
    from agentd.config.load import Loaded


def run(loaded: Loaded) -> int:
    """Serve the probe that `loaded` was invoked with."""
    probe = loaded.invocation.probe
    if probe == "version":
        return emit(f"agentd {__version__}\n")
    if probe == "help":
        from agentd.cli.help import page

        return emit(page(loaded.table))
    if probe == "validate-config":
        return validate(loaded)
    if probe == "effective-config":
        from agentd.config.effective import effective

        return _json(effective(loaded))
    if loaded.invocation.faults:
        raise ConfigError(findings=loaded.invocation.faults)
    if probe == "capabilities":
        from agentd.cli.capabilities import capabilities

        return _json(capabilities(loaded))
    from agentd.config import schema

    return _json(schema.config(loaded.model) if probe == "config-schema" else schema.workflow(loaded.plugins))


def validate(loaded: Loaded) -> int:
    """Every finding on stderr, or that there is none."""
    from agentd.cli.dispatch import report

    if not report(loaded):
        return EXIT_CONFIG
    tell("config.valid", files=loaded.files, schema="1")
    return EXIT_OK


def _json(value: object) -> int:
    return emit(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
