"""An agent of the Claude Agent SDK, which brings a Claude Code of its own."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, query
from loop import ARGS, COMMAND, PROMPT


async def main():
    options = ClaudeAgentOptions(
        mcp_servers={"probe": {"type": "stdio", "command": COMMAND, "args": ARGS}},
        permission_mode="bypassPermissions",
    )
    async for _ in query(prompt=PROMPT, options=options):
        pass


asyncio.run(main())
