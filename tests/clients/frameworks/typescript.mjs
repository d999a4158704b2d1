// The official TypeScript clients, v1 or v2; the model is shown the whole result.
import { packages } from "../../servers/clients/drive.mjs";

const version = process.argv[2];
const sdk = version === "v1" ? "@modelcontextprotocol/sdk/client/" : "@modelcontextprotocol/client";
const { Client } = packages(version === "v1" ? sdk + "index.js" : sdk);
const { StdioClientTransport } = packages(version === "v1" ? sdk + "stdio.js" : sdk + "/stdio");

const [command, ...args] = JSON.parse(process.env.SERVER);
const client = new Client({ name: `typescript-${version}`, version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args }));
const tools = (await client.listTools()).tools.map(({ name }) => ({ type: "function", function: { name } }));
const messages = [{ role: "user", content: "Call the tools as you are told." }];

async function ask() {
  const body = JSON.stringify({ model: "stand-in", messages, tools });
  const response = await fetch(process.env.MODEL_URL + "/v1/chat/completions", { method: "POST", body });
  const [{ message }] = (await response.json()).choices;
  messages.push(message);
  return message.tool_calls ?? [];
}

for (let calls = await ask(); calls.length; calls = await ask()) {
  for (const { id, function: { name, arguments: text } } of calls) {
    const result = await client.callTool({ name, arguments: JSON.parse(text) });
    messages.push({ role: "tool", tool_call_id: id, content: JSON.stringify(result) });
  }
}
await client.close();
