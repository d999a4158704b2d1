"""An agent of CrewAI, with a model whose window it knows; a quarter of it is the most it shows."""

from crewai import LLM, Agent
from crewai.mcp import MCPServerStdio
from loop import ENV, PROMPT, URL, script

# It makes the command a part of each tool's name, which it cuts at 64 characters.
server = MCPServerStdio(command="sh", args=[script().name], env=ENV)
model = LLM(model="openai/gpt-4.1", base_url=URL, api_key="-")
agent = Agent(role="-", goal="-", backstory="-", llm=model, mcps=[server], max_iter=60)
agent.kickoff(PROMPT)
