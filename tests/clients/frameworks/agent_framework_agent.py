"""An agent of Microsoft's Agent Framework."""

import asyncio

from agent_framework import Agent, MCPStdioTool
from agent_framework.openai import OpenAIChatCompletionClient
from loop import ARGS, COMMAND, ENV, PROMPT, URL


async def main():
    client = OpenAIChatCompletionClient(
        "stand-in",
        api_key="-",
        base_url=URL,
        function_invocation_configuration={"max_iterations": 60},
    )
    async with MCPStdioTool("probe", COMMAND, args=ARGS, env=ENV, request_timeout=60) as tools:
        await Agent(client, tools=[tools]).run(PROMPT)


asyncio.run(main())
