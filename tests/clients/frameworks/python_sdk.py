"""The official Python client; the model is shown the whole result."""

import asyncio

from loop import ARGS, COMMAND, ENV, play
from mcp import Client, StdioServerParameters


async def main():
    server = StdioServerParameters(command=COMMAND, args=ARGS, env=ENV)
    async with Client(server) as client:

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            return result.model_dump_json(by_alias=True, exclude_none=True)

        await play([tool.name for tool in (await client.list_tools()).tools], call)


asyncio.run(main())
