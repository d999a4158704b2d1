// An agent of the OpenAI Agents SDK for JavaScript.
import { Agent, MCPServerStdio, OpenAIProvider, Runner } from "@openai/agents";

const [command, ...args] = JSON.parse(process.env.SERVER);
const { PATH, HOME, OPENAI_BASE_URL } = process.env;
const server = new MCPServerStdio({ name: "probe", command, args, env: { PATH, HOME }, timeout: 60000 });
await server.connect();
try {
  const modelProvider = new OpenAIProvider({ apiKey: "-", baseURL: OPENAI_BASE_URL, useResponses: false });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const agent = new Agent({ name: "agent", model: "stand-in", mcpServers: [server] });
  await runner.run(agent, "Call the tools as you are told and then say that you are done.", { maxTurns: 60 });
} finally {
  await server.close();
}
