"""What the types cannot say: one function a subject, every finding at once, nothing touched."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentd.config import grants, lifetime, workflows
from agentd.config.files import Tree
from agentd.config.findings import Finding, dotted
from agentd.config.paths import Table
from agentd.config.secrets import PROSE, credential_place, is_reference
from agentd.config.syntax import Where

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.plugins import PluginSet


def check(document: Document, plugins: PluginSet) -> list[Finding]:
    """All findings about a document whose types are right."""
    return [
        *_endpoints(document),
        *_servers(document),
        *_instruction(document),
        *_kinds(document, plugins),
        *_store(document, plugins),
        *_trifecta(document),
        *grants.check(document),
        *workflows.check(document, plugins),
    ]


def endpoint_fault(url: str) -> str:
    """Why `url` cannot be dialled as an endpoint; empty when it can. Never repeats a credential."""
    if "{{" in url:
        return "a reference is not resolved in a URL: write it out, or use {{config.NAME}}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if any(c.isspace() or ord(c) < 32 for c in url):
        return "holds a blank or a control character"
    if parts.scheme not in ("http", "https") or not host:
        return "expected https://HOST…, or http:// on a loopback host"
    if parts.username is not None or parts.password is not None:
        return "must not carry a credential: use a token or a header with a {{secret:NAME}}"
    if port == 0:
        return "port 0 cannot be dialled"
    if parts.scheme == "http" and not loopback(host):
        return f"http:// is for a loopback host only, {host} is none: use https://"
    return ""


def loopback(host: str) -> bool:
    """Whether `host` is this machine by its spelling alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def _endpoints(document: Document) -> Iterator[Finding]:
    for index, url in enumerate(document.intelligence.endpoints):
        fault = "" if url.startswith("mock:") else endpoint_fault(url)
        if url == "mock:":
            fault = "expected mock:final or mock:FILE.yaml"
        if fault:
            yield Finding("error", f"intelligence.endpoints[{index}]", fault)
    for position in {*document.intelligence.tokens, *document.intelligence.token_files}:
        if document.intelligence.endpoints and int(position) > len(document.intelligence.endpoints):
            wrong = (
                f"there is a credential for endpoint {position}, and {len(document.intelligence.endpoints)} endpoint(s)"
            )
            yield Finding("warning", f"intelligence.tokens.{position}", wrong)
    for index, server in enumerate(document.mcp.servers):
        if fault := endpoint_fault(server.endpoint):
            yield Finding("error", f"mcp.servers[{index}].endpoint", fault)


def _servers(document: Document) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, server in enumerate(document.mcp.servers):
        at = f"mcp.servers[{index}].name"
        if server.name == "code":
            yield Finding("error", at, "the name `code` is reserved")
        if server.name in seen:
            yield Finding("error", at, f"{server.name!r} is the name of mcp.servers[{seen[server.name]}] too")
        seen.setdefault(server.name, index)


def _instruction(document: Document) -> Iterator[Finding]:
    given = document.agent.instruction
    if given is None or isinstance(given, str):
        return
    sources = [name for name in type(given).model_fields if getattr(given, name) is not None]
    if len(sources) != 1:
        wrong = f"exactly one source is needed, got {', '.join(sources) or 'none'}"
        yield Finding("error", "agent.instruction", wrong)


def _kinds(document: Document, plugins: PluginSet) -> Iterator[Finding]:
    dialect = document.intelligence.dialect
    if plugins.dialects and dialect not in plugins.dialects:
        yield Finding("error", "intelligence.dialect", plugins.missing("dialects", dialect))
    named = [("intelligence", document.intelligence.auth)]
    named += [(f"mcp.servers[{index}]", server.auth) for index, server in enumerate(document.mcp.servers)]
    for path, auth in named:
        if auth is None:
            continue
        if auth.kind not in plugins.auth_schemes:
            yield Finding("error", f"{path}.auth.kind", plugins.missing("auth_schemes", auth.kind))
        else:
            yield from _options(f"{path}.auth", plugins.auth_schemes[auth.kind].options, auth.model_extra or {})


def _options(path: str, model: Any, given: dict[str, Any]) -> Iterator[Finding]:
    from pydantic import ValidationError

    try:
        model.model_validate(given)
    except ValidationError as fault:
        for error in fault.errors(include_url=False, include_input=False):
            yield Finding("error", f"{path}.{dotted(error['loc'])}".rstrip("."), str(error["msg"]))


def _store(document: Document, plugins: PluginSet) -> Iterator[Finding]:
    chosen, shape = document.store.kind, lifetime.shape(document, plugins)
    kind = lifetime.store_kind(document, plugins)
    spec = plugins.stores.get(kind)
    if spec is None:
        if chosen or shape == "daemon":
            yield Finding("error", "store.kind", plugins.missing("stores", kind))
        return
    if kind == "none" and shape == "daemon":
        wrong = "a long-lived instance needs a store: its inbox, timers and runs live there (kind: file)"
        yield Finding("error", "store.kind", wrong)
    elif chosen == "none":
        yield Finding("warning", "store.kind", "none: a retried run starts over")
    elif kind == "memory":
        yield Finding("warning", "store.kind", "memory: all state is gone when the process ends")
    if spec.options.model_fields and getattr(document.store, kind, None) is None:
        yield from _options(f"store.{kind}", spec.options, {})


def _trifecta(document: Document) -> Iterator[Finding]:
    from agentd.security.trifecta import explain

    wrong = explain(document.mcp.servers, document.agent.tools.mcp, document.tools.disabled)
    if not wrong:
        return
    if document.security.allow_trifecta:
        yield Finding("warning", "security.allow_trifecta", f"admitted: {wrong}")
    else:
        yield Finding("error", "mcp.servers", f"{wrong}; narrow agent.tools.mcp, or set security.allow_trifecta")


def inline_credentials(tree: Tree, value: dict[str, Any], table: Table) -> Iterator[Finding]:
    """Credentials that a file spells out: they belong in the environment or a file of their own."""
    secret: set[Where] = {option.at for option in table.options if option.secret}

    def walk(here: Any, at: Where, hidden: bool) -> Iterator[Finding]:
        hidden = hidden or at in secret or credential_place(at)
        if isinstance(here, dict | list):
            for key, below in here.items() if isinstance(here, dict) else enumerate(here):
                yield from walk(below, (*at, key), hidden)
        elif isinstance(here, str) and here and hidden and not is_reference(here):
            known = "{{secret:NAME}} or {{secret-file:PATH}}"
            yield Finding("error", dotted(at), f"a credential must be a reference, {known} ({tree.source(at)})")

    for key, below in value.items():
        if (key,) not in PROSE and key != "vars":
            yield from walk(below, (key,), False)


_RESOLVING = frozenset({"headers", "auth"})
"""Keys below which a reference is resolved at the moment of use."""
_FREE = frozenset({"vars", "workflows", "store", "plugins"})
"""Sections whose readers resolve references themselves, or whose values go elsewhere."""


def misplaced_references(value: dict[str, Any], table: Table) -> Iterator[Finding]:
    """References to secrets where nobody resolves them: they would be used as they are written."""
    secret: set[Where] = {option.at for option in table.options if option.secret}

    def walk(here: Any, at: Where) -> Iterator[Finding]:
        if at in PROSE or at in secret or (at and at[-1] in _RESOLVING):
            return
        if isinstance(here, dict | list):
            for key, below in here.items() if isinstance(here, dict) else enumerate(here):
                yield from walk(below, (*at, key))
        elif is_reference(here):
            yield Finding("error", dotted(at), "a secret reference is not resolved here: it is for credentials only")

    for key, below in value.items():
        if key not in _FREE:
            yield from walk(below, (key,))
