"""The same turn by hand, with the standard library. Arguments: MODEL_URL MCP_URL."""

import http.client
import json
import sys
from typing import Any
from urllib.parse import urlsplit

model, tools = map(urlsplit, sys.argv[1:])
connection = http.client.HTTPConnection("127.0.0.1", model.port or 80)


def post(path: str, value: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(value), {"Content-Type": "application/json"})
    return dict(json.loads(connection.getresponse().read()))


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return dict(post(tools.path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})["result"])


rpc("initialize", protocolVersion="2025-06-18")
offered = [
    {"type": "function", "function": {"name": t["name"], "parameters": t["inputSchema"]}}
    for t in rpc("tools/list")["tools"]
]
messages: list[dict[str, Any]] = [{"role": "user", "content": "add 1 and 2"}]
while True:
    asked = {"model": "m", "messages": messages, "tools": offered}
    said = post(f"{model.path}/chat/completions", asked)["choices"][0]["message"]
    messages.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        function = call["function"]
        result = rpc("tools/call", name=function["name"], arguments=json.loads(function["arguments"]))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result["content"][0]["text"]})
print(said["content"])
