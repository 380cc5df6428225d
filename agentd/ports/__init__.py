"""What plugins implement and receive: Protocols and frozen records, no behaviour.

One module a subject: :mod:`~agentd.ports.store`, :mod:`~agentd.ports.model`, :mod:`~agentd.ports.auth`,
:mod:`~agentd.ports.nodes`, :mod:`~agentd.ports.schedule`, :mod:`~agentd.ports.host`.
"""
