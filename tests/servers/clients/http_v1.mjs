// Drives the client of the TypeScript SDK 1.x over HTTP: revisions with a handshake only.
import { capabilities, converse, packages } from "./converse.mjs";

const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = packages("@modelcontextprotocol/sdk/types.js");

const requests = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
};

await converse(async (spec, on) => {
  const client = new Client({ name: "typescript-v1", version: "1.0.0" }, { capabilities });
  for (const [method, schema] of Object.entries(requests))
    client.setRequestHandler(schema, (request) => on.request(method, request.params));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (note) => on.log(note.params));
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, on.changed);
  const transport = new StreamableHTTPClientTransport(new URL(spec.url));
  await client.connect(transport);
  const call = (params, options) => client.callTool(params, undefined, options);
  return { client, transport, call, version: transport.protocolVersion };
});
