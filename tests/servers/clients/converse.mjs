// One conversation of a TypeScript client over HTTP, in which happens whatever can happen there:
// argv's JSON spec in, one JSON line of its record out.
//
// spec: {sdk: "v1" | "v2", url, mode, calls: [[step, tool, arguments]]}
// line: {version, tools, results, progress, logged, questions}
import { createRequire } from "node:module";

// The packages lie in the cache, not above this file, where an import would look.
const packages = createRequire(new URL("../../../.cache/servers/node/package.json", import.meta.url));

const answers = {
  "elicitation/create": { action: "accept", content: { name: "Zoë" } },
  "sampling/createMessage": { role: "assistant", model: "a model", content: { type: "text", text: "Paris" } },
  "roots/list": { roots: [{ uri: "file:///one" }, { uri: "file:///two" }] },
};
const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const LEVEL = { "io.modelcontextprotocol/logLevel": "info" };

const spec = JSON.parse(process.argv[2]);
const record = { results: {}, progress: {}, logged: [], questions: [] };
let changed = 0;
const onRequest = (method, params) => {
  record.questions.push([method, params?.message ?? params?.messages?.[0].content.text ?? null]);
  return answers[method];
};
const onLog = (params) => record.logged.push(params.data);
const onChanged = () => (changed += 1);

const v1 = async () => {
  const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const types = packages("@modelcontextprotocol/sdk/types.js");
  const schemas = {
    "elicitation/create": types.ElicitRequestSchema,
    "sampling/createMessage": types.CreateMessageRequestSchema,
    "roots/list": types.ListRootsRequestSchema,
  };
  const client = new Client({ name: "typescript-v1", version: "1.0.0" }, { capabilities });
  for (const [method, schema] of Object.entries(schemas))
    client.setRequestHandler(schema, (request) => onRequest(method, request.params));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (note) => onLog(note.params));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, onChanged);
  const transport = new StreamableHTTPClientTransport(new URL(spec.url));
  await client.connect(transport);
  const call = (params, options) => client.callTool(params, undefined, options);
  return { client, transport, call, version: transport.protocolVersion };
};

const v2 = async () => {
  const { Client, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
  const info = { name: "typescript-v2", version: "1.0.0" };
  const client = new Client(info, { capabilities, versionNegotiation: { mode: spec.mode } });
  for (const method of Object.keys(answers))
    client.setRequestHandler(method, (request) => onRequest(method, request.params));
  client.setNotificationHandler("notifications/message", (note) => onLog(note.params));
  client.setNotificationHandler("notifications/tools/list_changed", onChanged);
  const transport = new StreamableHTTPClientTransport(new URL(spec.url));
  await client.connect(transport);
  const call = (params, options) => client.callTool(params, options);
  return { client, transport, call, version: client.getNegotiatedProtocolVersion() };
};

const { client, transport, call, version } = await { v1, v2 }[spec.sdk]();
record.version = version;
record.tools = (await client.listTools()).tools;

const step = async (name, tool, given, first = () => {}, signal = undefined) => {
  const progress = (record.progress[name] = []);
  const onprogress = (params) => {
    progress.push(params.progress);
    if (progress.length === 1) first();
  };
  try {
    record.results[name] = { ok: await call({ name: tool, arguments: given, _meta: LEVEL }, { onprogress, signal }) };
  } catch (error) {
    record.results[name] = { error: [error.code ?? null, error.message] };
  }
};

for (const [name, tool, given] of spec.calls) await step(name, tool, given);
const abort = new AbortController();
await step("linger", "linger", {}, () => abort.abort("enough"), abort.signal);
await step("after", "echo", { text: "still here" });
const handshake = version < "2026";
const subscription = handshake ? undefined : await client.listen({ toolsListChanged: true });
// The stream that the notification comes on may be opened after a call.
while (!changed) {
  await step("change", "change", {});
  await new Promise((resolve) => setTimeout(resolve, 50));
}
await subscription?.close();
if (transport.sessionId !== undefined) await transport.terminateSession();
await client.close();
process.stdout.write(JSON.stringify(record) + "\n");
