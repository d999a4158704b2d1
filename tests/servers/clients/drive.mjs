// What both TypeScript clients do alike: argv's JSON spec in, one JSON line of what was seen out.
//
// spec: {command, args, calls: [{name, arguments}], mode: "auto" | "legacy" | "2026-07-28",
//        client: {name, version}}
// line: {tools, results: [{ok: true, result} | {ok: false, error: {code, message}}], protocolVersion}
import { createRequire } from "node:module";

// The packages lie in the cache, not above this file, where an import would look.
export const packages = createRequire(new URL("../../../.cache/servers/node/package.json", import.meta.url));

export async function drive(connect) {
  const spec = JSON.parse(process.argv[2]);
  const server = { command: spec.command, args: spec.args, stderr: "inherit" };
  const { client, protocolVersion } = await connect(server, spec.client, spec.mode);

  const tools = await everyPage(client);
  const results = [];
  for (const call of spec.calls) {
    try {
      results.push({ ok: true, result: await client.callTool(call) });
    } catch (error) {
      results.push({ ok: false, error: { code: error.code, message: error.message } });
    }
  }
  await client.close();
  process.stdout.write(JSON.stringify({ tools, results, protocolVersion }) + "\n");
}

async function everyPage(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}
