"""A model and an MCP server with one tool on one loopback port, which is printed; as little code as it can be.

The model calls the first tool, and says "done: 3" once it has the result.
"""

import asyncio
import json
from typing import Any

ADD = {
    "name": "add",
    "description": "Add two integers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


def chat(asked: dict[str, Any]) -> dict[str, Any]:
    answered = any(message.get("role") == "tool" for message in asked["messages"])
    names = [t["function"]["name"] for t in asked.get("tools") or [] if t["function"]["name"].endswith("add")]
    said: dict[str, Any] = {"role": "assistant", "content": "done: 3"}
    if not answered and names:
        call = {"id": "call_1", "type": "function", "function": {"name": names[0], "arguments": '{"a":1,"b":2}'}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "stop" if said["content"] else "tool_calls"
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": asked.get("model", "m"),
        "choices": [{"index": 0, "message": said, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def mcp(asked: dict[str, Any]) -> dict[str, Any] | None:
    method, number = asked.get("method"), asked.get("id")
    if number is None:
        return None
    result: dict[str, Any] = {}
    if method == "initialize":
        result = {
            "protocolVersion": asked["params"].get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mock", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [ADD]}
    elif method == "tools/call":
        given = asked["params"].get("arguments", {})
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}], "isError": False}
    elif method != "ping":
        return {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": number, "result": result}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            verb, path = head.split()[:2]
            length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
            body = await reader.readexactly(length)
            status, answer = (405, None) if verb == "get" else (200, None)
            if verb == "post":
                answer = mcp(json.loads(body)) if path == "/mcp" else chat(json.loads(body))
                status = 202 if answer is None else 200
            text = b"" if answer is None else json.dumps(answer).encode()
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n".encode())
            writer.write(f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
