// Times calls of the TypeScript SDK's client: argv's JSON spec in, one JSON line out.
//
// spec: {command, args, env, cwd, tool, calls}; line: {milliseconds: [...], size} or {error}
import { packages } from "../servers/clients/drive.mjs";

const { Client } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

const { tool, calls, ...server } = JSON.parse(process.argv[2]);
const client = new Client({ name: "benchmark", version: "1.0.0" }, { versionNegotiation: { mode: "legacy" } });
const seen = { milliseconds: [], size: 0 };
try {
  await client.connect(new StdioClientTransport({ ...server, stderr: "inherit" }));
  await client.listTools();
  let answer;
  // The first call also makes the server's answer and warms up; it is not counted.
  for (let made = 0; made <= calls; made++) {
    const began = performance.now();
    answer = await client.callTool({ name: tool, arguments: {} }, { timeout: 20_000 });
    if (made) seen.milliseconds.push(performance.now() - began);
  }
  seen.size = JSON.stringify(answer).length;
  await client.close();
} catch (error) {
  seen.error = error.message;
  seen.milliseconds = [];
}
process.stdout.write(JSON.stringify(seen) + "\n");
process.exit(0);
