"""What agentd tells of itself: the closed vocabulary of events, and how a line of it reaches stderr.

:mod:`~agentd.telemetry.vocabulary` is the table, :class:`~agentd.telemetry.emitter.Telemetry` writes an event,
:class:`~agentd.telemetry.writer.LineWriter` carries lines to a descriptor without ever blocking the caller, and
:mod:`~agentd.telemetry.pretty` is what a person sees on a terminal. Nothing here imports asyncio.
"""
