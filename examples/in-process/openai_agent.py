"""An agent of the OpenAI Agents SDK with that tool."""

import sys

from agents import Agent, Runner, function_tool
from issues import list_issues

agent = Agent("shop", model="gpt-5", tools=[function_tool(list_issues)])
print(Runner.run_sync(agent, sys.argv[1]).final_output)
