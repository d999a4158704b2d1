"""An agent of the OpenAI Agents SDK."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from loop import ARGS, COMMAND, ENV, PROMPT, URL
from openai import AsyncOpenAI

set_tracing_disabled(True)


async def main():
    params = {"command": COMMAND, "args": ARGS, "env": ENV}
    async with MCPServerStdio(params, client_session_timeout_seconds=60) as server:
        model = OpenAIChatCompletionsModel("stand-in", AsyncOpenAI(base_url=URL))
        await Runner.run(Agent("agent", model=model, mcp_servers=[server]), PROMPT, max_turns=60)


asyncio.run(main())
