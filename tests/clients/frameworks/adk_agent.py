"""An agent of Google's Agent Development Kit; the SDK of Gemini takes the model's URL from us."""

import asyncio
import os

os.environ |= {"GOOGLE_API_KEY": "-", "GOOGLE_GEMINI_BASE_URL": os.environ["MODEL_URL"]}

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from loop import ARGS, COMMAND, ENV, PROMPT
from mcp import StdioServerParameters


async def main():
    server = StdioServerParameters(command=COMMAND, args=ARGS, env=ENV)
    tools = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=60))
    agent = LlmAgent(name="agent", model="gemini-2.5-pro", tools=[tools])
    await InMemoryRunner(agent=agent).run_debug(PROMPT)
    await tools.close()


asyncio.run(main())
