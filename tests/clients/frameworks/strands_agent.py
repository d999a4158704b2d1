"""An agent of Strands."""

from loop import ARGS, COMMAND, ENV, PROMPT, URL
from mcp import StdioServerParameters, stdio_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

server = StdioServerParameters(command=COMMAND, args=ARGS, env=ENV)
with MCPClient(lambda: stdio_client(server)) as client:
    model = OpenAIModel(client_args={"base_url": URL, "api_key": "-"}, model_id="stand-in")
    Agent(model, tools=client.list_tools_sync())(PROMPT)
