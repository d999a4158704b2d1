"""An agent of Agno, which starts no command but those that it knows, unless given parameters."""

import asyncio

from agno.agent import Agent
from agno.models.openai.like import OpenAILike
from agno.tools.mcp import MCPTools
from loop import ARGS, COMMAND, ENV, PROMPT, URL
from mcp import StdioServerParameters


async def main():
    server = StdioServerParameters(command=COMMAND, args=ARGS, env=ENV)
    async with MCPTools(server_params=server, timeout_seconds=60) as tools:
        model = OpenAILike(id="stand-in", base_url=URL, api_key="-")
        await Agent(model=model, tools=[tools], telemetry=False).arun(PROMPT)


asyncio.run(main())
