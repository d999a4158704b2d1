"""An agent of mcp-use."""

import asyncio

from langchain_openai import ChatOpenAI
from loop import ARGS, COMMAND, ENV, PROMPT, URL
from mcp_use import MCPAgent, MCPClient


async def main():
    server = {"command": COMMAND, "args": ARGS, "env": ENV}
    client = MCPClient.from_dict({"mcpServers": {"probe": server}})
    model = ChatOpenAI(model="stand-in", base_url=URL)
    try:
        await MCPAgent(llm=model, client=client, max_steps=60).run(PROMPT)
    finally:
        await client.close_all_sessions()


asyncio.run(main())
