"""An agent of LangChain with that tool."""

import sys

from issues import list_issues
from langchain.agents import create_agent

agent = create_agent("openai:gpt-5", [list_issues])
print(agent.invoke({"messages": [{"role": "user", "content": sys.argv[1]}]})["messages"][-1].text)
