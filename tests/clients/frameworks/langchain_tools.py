"""LangChain, in one session, or with `get_tools()`, which opens a session for each call."""

import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from loop import ARGS, COMMAND, ENV, PROMPT, URL


async def run(tools):
    agent = create_agent(ChatOpenAI(model="stand-in", base_url=URL), tools)
    messages = [{"role": "user", "content": PROMPT}]
    await agent.ainvoke({"messages": messages}, {"recursion_limit": 99})


async def main():
    server = {"transport": "stdio", "command": COMMAND, "args": ARGS, "env": ENV}
    client = MultiServerMCPClient({"probe": server})
    if "get_tools" in sys.argv:
        return await run(await client.get_tools())
    async with client.session("probe") as session:
        return await run(await load_mcp_tools(session))


asyncio.run(main())
