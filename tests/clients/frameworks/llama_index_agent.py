"""An agent of LlamaIndex."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from loop import ARGS, COMMAND, ENV, PROMPT, URL


async def main():
    client = BasicMCPClient(COMMAND, args=ARGS, env=ENV, timeout=60)
    model = OpenAILike(
        model="stand-in",
        api_base=URL,
        api_key="-",
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=1_000_000,
    )
    tools = await McpToolSpec(client).to_tool_list_async()
    await FunctionAgent(tools=tools, llm=model, timeout=170).run(PROMPT, max_iterations=60)


asyncio.run(main())
