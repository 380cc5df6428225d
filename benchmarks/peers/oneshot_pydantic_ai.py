"""pydantic-ai: one turn with one MCP server. Arguments: MODEL_URL MCP_URL."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(model: str, tools: str) -> None:
    client = OpenAIChatModel("m", provider=OpenAIProvider(base_url=model, api_key="x"))
    agent = Agent(client, system_prompt="be brief", toolsets=[MCPToolset(tools)])
    async with agent:
        print((await agent.run("add 1 and 2")).output)


asyncio.run(main(*sys.argv[1:]))
