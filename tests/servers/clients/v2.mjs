// Drives the client of the TypeScript SDK 2.x, in both eras of the protocol.
import { drive, packages } from "./drive.mjs";

const { Client } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

await drive(async (server, info, mode) => {
  const negotiation = mode === "auto" || mode === "legacy" ? mode : { pin: mode };
  const client = new Client(info, { versionNegotiation: { mode: negotiation } });
  await client.connect(new StdioClientTransport(server));
  return { client, protocolVersion: client.getNegotiatedProtocolVersion() };
});
