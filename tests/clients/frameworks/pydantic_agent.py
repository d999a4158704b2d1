"""An agent of Pydantic AI."""

import asyncio

from loop import ARGS, COMMAND, ENV, PROMPT, URL
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset, StdioTransport
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main():
    model = OpenAIChatModel("stand-in", provider=OpenAIProvider(base_url=URL))
    agent = Agent(model, toolsets=[MCPToolset(StdioTransport(COMMAND, ARGS, env=ENV))])
    async with agent:
        await agent.run(PROMPT)


asyncio.run(main())
