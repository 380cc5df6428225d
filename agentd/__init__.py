"""agentd: the runtime for one durable LLM agent.

Importing the package loads nothing else, so that ``agentd --version`` costs little more than Python itself.
Plugin authors import :mod:`agentd.hookspecs`, :mod:`agentd.ports`, :mod:`agentd.errors` and
:mod:`agentd.testing`, and put ``hookimpl`` before each hook they implement.
"""

__version__ = "1.1.0"
RUNTIME = "1"
"""The version of the runtime contract (`runtime` in `proc.start` and `--capabilities`)."""
