"""Entities and the store: keys, sequences, envelopes, and what a restart finds.

:class:`~agentd.journal.journal.Journal` writes records ``(kind, id, state)`` and restores them;
:class:`~agentd.journal.memory.Memory`, :class:`~agentd.journal.streams.Streams` and
:class:`~agentd.journal.artifacts.Artifacts` are views of one kind each.
"""
