// The AI SDK.
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";

const [command, ...args] = JSON.parse(process.env.SERVER);
const { PATH, HOME, MODEL_URL } = process.env;
const transport = new Experimental_StdioMCPTransport({ command, args, env: { PATH, HOME } });
const client = await createMCPClient({ transport });
try {
  const provider = createOpenAICompatible({ name: "local", baseURL: MODEL_URL + "/v1", apiKey: "-" });
  await generateText({
    model: provider("stand-in"),
    tools: await client.tools(),
    stopWhen: stepCountIs(60),
    prompt: "Call the tools as you are told and then say that you are done.",
  });
} finally {
  await client.close();
}
