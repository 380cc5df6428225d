"""Durations and sizes of the configuration; they live in :mod:`agentd.quantities`, where every room may import them."""

from agentd.quantities import parse_duration, parse_size

__all__ = ["parse_duration", "parse_size"]
