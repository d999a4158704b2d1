"""An agent of Pydantic AI with that tool."""

import sys

from issues import list_issues
from pydantic_ai import Agent

agent = Agent("openai:gpt-5", tools=[list_issues])
print(agent.run_sync(sys.argv[1]).output)
