"""FastMCP's client; the model is shown `data`, as a program would hand it on."""

import asyncio
import json

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from loop import ARGS, COMMAND, ENV, play


def plain(data):
    if isinstance(data, str):
        return data
    return json.dumps(data, default=members)


def members(value):
    """Return the members of an object of the type that FastMCP made of the outputSchema."""
    return {name: member for name, member in vars(value).items() if member is not None}


async def main():
    async with Client(StdioTransport(COMMAND, ARGS, env=ENV)) as client:

        async def call(name, arguments):
            result = await client.call_tool(name, arguments, raise_on_error=False)
            if result.data is not None:
                return plain(result.data)
            return "\n".join(getattr(each, "text", f"[{each.type}]") for each in result.content)

        await play([tool.name for tool in await client.list_tools()], call)


asyncio.run(main())
