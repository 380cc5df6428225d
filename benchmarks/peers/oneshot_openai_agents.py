"""openai-agents: one turn with one MCP server. Arguments: MODEL_URL MCP_URL."""

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def main(model: str, tools: str) -> None:
    async with MCPServerStreamableHttp({"url": tools}, cache_tools_list=True) as server:
        client = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=model, api_key="x"))
        agent = Agent(name="a", instructions="be brief", model=client, mcp_servers=[server])
        print((await Runner.run(agent, "add 1 and 2")).final_output)


asyncio.run(main(*sys.argv[1:]))
