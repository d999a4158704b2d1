// Drives the client of the TypeScript SDK 1.x, which knows the revisions with a handshake only.
import { drive, packages } from "./drive.mjs";

const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = packages("@modelcontextprotocol/sdk/client/stdio.js");

await drive(async (server, info, mode) => {
  if (mode === "2026-07-28") throw new Error("the SDK 1.x does not speak 2026-07-28");
  const transport = new StdioClientTransport(server);
  let protocolVersion;
  transport.setProtocolVersion = (version) => (protocolVersion = version);
  const client = new Client(info);
  await client.connect(transport);
  return { client, protocolVersion };
});
