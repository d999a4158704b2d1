// LangChain for JavaScript.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";

const [command, ...args] = JSON.parse(process.env.SERVER);
const { PATH, HOME, OPENAI_BASE_URL } = process.env;
const client = new MultiServerMCPClient({ probe: { transport: "stdio", command, args, env: { PATH, HOME } } });
try {
  const model = new ChatOpenAI({ model: "stand-in", apiKey: "-", configuration: { baseURL: OPENAI_BASE_URL } });
  const agent = createAgent({ model, tools: await client.getTools() });
  const messages = [{ role: "user", content: "Call the tools as you are told and then say that you are done." }];
  await agent.invoke({ messages }, { recursionLimit: 150 });
} finally {
  await client.close();
}
