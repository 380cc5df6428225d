"""The pytest plugin that comes with agentd; it costs a foreign test run nothing."""

from __future__ import annotations
