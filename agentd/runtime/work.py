"""The first frame of a turn: everything a child needs, with secrets resolved at this moment and not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentd.config.document import Document, McpServer
from agentd.ports.host import Secrets

_PASSED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD")
"""Variables a child needs to dial out as its parent would; both spellings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one turn is to do, apart from the configuration. None means: as configured."""

    run: str
    step: str
    key: str
    attempt: int = 1
    instruction: str = ""
    prompt: str = ""
    persona: str | None = None
    messages: Sequence[Mapping[str, Any]] = ()
    transcript: Sequence[Mapping[str, Any]] = ()
    servers: Sequence[str] | None = None
    internal: Sequence[str] | None = None
    tools: Sequence[str] | None = None
    rounds: int | None = None
    tokens: int | None = None
    deadline: float | None = None
    schema: Mapping[str, Any] | None = None
    model: str | None = None
    agent_path: str = "0.1"
    traceparent: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def build(
    task: Task,
    document: Document,
    *,
    instance: str,
    secrets: Secrets,
    environ: Mapping[str, str],
    endpoints: Sequence[Mapping[str, Any]],
    catalogue: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The `work` frame. Raises SecretMissing for a reference that resolves to nothing now."""
    intelligence, agent = document.intelligence, document.agent
    servers = [s for s in document.mcp.servers if task.servers is None or s.name in task.servers]
    selected = agent.tools.mcp if task.tools is None else list(task.tools)
    return {
        "turn": task.key,
        "run": task.run,
        "step": task.step,
        "attempt": task.attempt,
        "agent_id": f"turn-{task.key[:12]}",
        "agent_path": task.agent_path,
        "persona": agent.persona if task.persona is None else task.persona,
        "instruction": task.instruction,
        "prompt": task.prompt,
        "messages": list(task.messages),
        "transcript": list(task.transcript),
        "model": {
            "endpoints": list(endpoints),
            "dialect": intelligence.dialect,
            "model": task.model or intelligence.model,
            "timeout": intelligence.timeout,
            "max_tokens": intelligence.max_tokens,
            "auth": intelligence.auth is not None,
            "plugins": {"allow": document.plugins.allow, "disabled": document.plugins.disabled},
        },
        "servers": [_server(s, document.mcp.default_timeout, secrets) for s in servers],
        "catalogue": catalogue,
        "grants": {
            "internal": agent.tools.internal if task.internal is None else list(task.internal),
            "mcp": selected,
            "disabled": document.tools.disabled,
            "overrides": document.tools.overrides,
        },
        "limits": {"rounds": task.rounds, "tokens": task.tokens, "deadline": task.deadline},
        "output_schema": task.schema,
        "meta": {"run_id": task.run, "instance": instance, "traceparent": task.traceparent},
        "log": {"level": document.observability.log_level, "content": document.observability.log_content},
        "env": {k: v for k, v in environ.items() if k.upper() in _PASSED},
        "rlimits": {"memory": document.limits.memory, "cpu": document.limits.cpu},
        "tls_ca": document.security.tls_ca,
        **task.extra,
    }


def model_endpoints(document: Document, secrets: Secrets) -> list[dict[str, Any]]:
    """The model's endpoints with their credentials: each endpoint's own by its position, else the section's."""
    intelligence = document.intelligence
    headers = {name: secrets.resolve(value) for name, value in intelligence.headers.items()}
    found = []
    for index, url in enumerate(intelligence.endpoints, 1):
        token, file = intelligence.tokens.get(str(index)), intelligence.token_files.get(str(index))
        if token is None and file is None:
            token, file = intelligence.token, intelligence.token_file
        token = secrets.resolve(token) if token else None
        found.append({"url": url, "token": token, "token_file": file, "headers": headers, "mock": False})
    return found


def _server(server: McpServer, default_timeout: float, secrets: Secrets) -> dict[str, Any]:
    return {
        "name": server.name,
        "endpoint": server.endpoint,
        "headers": {name: secrets.resolve(value) for name, value in server.headers.items()},
        "ns": server.ns,
        "allow": server.allow,
        "exclude": server.exclude,
        "timeout": server.timeout or default_timeout,
        "required": server.required,
        "tags": server.tags,
        "auth": server.auth is not None,
    }
