// Drives the client of the TypeScript SDK 2.x over HTTP, in both eras of the protocol.
import { capabilities, converse, packages } from "./converse.mjs";

const { Client, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");

await converse(async (spec, on) => {
  const mode = spec.mode === "auto" || spec.mode === "legacy" ? spec.mode : { pin: spec.mode };
  const info = { name: "typescript-v2", version: "1.0.0" };
  const client = new Client(info, { capabilities, versionNegotiation: { mode } });
  for (const method of ["elicitation/create", "sampling/createMessage", "roots/list"])
    client.setRequestHandler(method, (request) => on.request(method, request.params));
  client.setNotificationHandler("notifications/message", (note) => on.log(note.params));
  client.setNotificationHandler("notifications/tools/list_changed", on.changed);
  const transport = new StreamableHTTPClientTransport(new URL(spec.url));
  await client.connect(transport);
  const call = (params, options) => client.callTool(params, options);
  return { client, transport, call, version: client.getNegotiatedProtocolVersion() };
});
