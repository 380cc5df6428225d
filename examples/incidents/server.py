"""An inbox of incidents as an MCP server: what the demonstration's agent works with.

Prints its endpoint on the first line of stdout and serves until it is stopped. Standard tools of the trade only: the
official MCP SDK and uvicorn.
"""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer

INCIDENTS: dict[str, dict[str, Any]] = {
    "INC-101": {
        "title": "Checkout answers 502 for one customer in twenty",
        "severity": "high",
        "service": "checkout",
        "opened": "2026-11-30T06:12:00Z",
        "notes": ["One of six pods fails its health check.", "Restarting it helps for about an hour."],
    },
    "INC-102": {
        "title": "Nightly export is three hours late",
        "severity": "medium",
        "service": "reporting",
        "opened": "2026-11-30T05:40:00Z",
        "notes": ["The warehouse was resized yesterday evening."],
    },
    "INC-103": {
        "title": "Typo on the status page",
        "severity": "low",
        "service": "website",
        "opened": "2026-11-29T16:03:00Z",
        "notes": [],
    },
}

server = MCPServer("incidents", log_level="WARNING")
digests: list[str] = []


@server.tool()
def list_incidents() -> list[dict[str, str]]:
    """The open incidents: id, title and severity of each."""
    return [{"id": key, "title": i["title"], "severity": i["severity"]} for key, i in INCIDENTS.items()]


@server.tool()
def get_incident(id: str) -> dict[str, Any]:
    """One incident in full, with its notes."""
    if id not in INCIDENTS:
        raise ValueError(f"there is no incident {id}; list_incidents names them")
    return {"id": id, **INCIDENTS[id]}


@server.tool()
def post_digest(text: str) -> dict[str, int]:
    """Post a digest to the team's channel."""
    digests.append(text)
    return {"posted": len(digests)}


def main() -> None:
    """Serve on a free loopback port."""
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that name it: 40 ms a call without.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # who reads the endpoint may connect at once
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
