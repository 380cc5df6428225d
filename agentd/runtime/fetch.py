"""Workflows that are fetched at startup (`{name, url, headers, timeout}`), fail closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentd.config import grants
from agentd.config.document import Document
from agentd.errors import ConfigError
from agentd.runtime.host import InstanceHost

_TIMEOUT = 10.0
_LIMIT = 1 << 20


async def fetch_workflows(
    found: Sequence[Mapping[str, Any]], host: InstanceHost, document: Document
) -> list[Mapping[str, Any]]:
    """`found` with every `url` entry replaced by the definition it names.

    Raises ConfigError when one cannot be fetched, is too large, is no workflow, or grants a step more than `document`
    allows: the instance does not start on half of its work.
    """
    if not any("url" in entry for entry in found):
        return list(found)
    whole = [await _fetch(entry, host) if "url" in entry else entry for entry in found]
    judged = grants.check(document.model_copy(update={"workflows": whole}))
    if wrong := [(f.path, f.msg) for f in judged if f.level == "error"]:
        raise ConfigError(findings=wrong)
    return whole


async def _fetch(entry: Mapping[str, Any], host: InstanceHost) -> Mapping[str, Any]:
    import httpx

    from agentd.config.quantities import parse_duration
    from agentd.config.syntax import SyntaxFault, parse_any
    from agentd.security.egress import check_url, transport

    url, name = str(entry["url"]), str(entry.get("name", ""))
    at = f"workflows.{name or url}"
    try:
        timeout = parse_duration(entry.get("timeout", _TIMEOUT))
        headers = {str(k): host.secrets.resolve(str(v)) for k, v in (entry.get("headers") or {}).items()}
        check_url(url)
        guard = transport(allow_private=bool(entry.get("allow_private")))
        async with (
            httpx.AsyncClient(timeout=timeout, transport=guard, trust_env=False) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LIMIT:
                    raise ValueError(f"it exceeds {_LIMIT >> 20} MiB")
            if response.status_code != 200:
                raise ValueError(f"HTTP {response.status_code}")
        definition = parse_any(body.decode("utf-8-sig"), url.rpartition("/")[2]).value
    except SyntaxFault as fault:
        raise ConfigError(findings=[(at, f"{fault.line}:{fault.column}: {fault.message}")]) from fault
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(findings=[(at, f"cannot fetch the workflow: {error or type(error).__name__}")]) from error
    if not isinstance(definition, dict):
        raise ConfigError(findings=[(at, "what was fetched is no workflow")])
    return {**definition, "name": name} if name else definition
