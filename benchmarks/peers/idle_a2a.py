"""An a2a-sdk server with one agent, tasks in memory, listening. Argument: PORT."""

import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

port = int(sys.argv[1])


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        raise NotImplementedError

    async def cancel(self, context, queue):
        pass


card = AgentCard(
    name="bench",
    description="bench",
    version="1",
    supported_interfaces=[
        AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="s", name="s", description="s", tags=["x"])],
)
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=create_jsonrpc_routes(handler, "/") + create_agent_card_routes(card))
uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", access_log=False)
