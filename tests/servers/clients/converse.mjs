// What both TypeScript clients do over HTTP alike: argv's JSON spec in, one JSON line of its
// record out. The steps are those of tests/conversation.py.
//
// spec: {url, key, mode, calls: [[step, tool, arguments]], handshake, witness: port}
// line: {version, tools, results, progress, logged, questions, changed}
import { createRequire } from "node:module";
import { connect as dial } from "node:net";

// The packages lie in the cache, not above this file, where an import would look.
export const packages = createRequire(new URL("../../../.cache/servers/node/package.json", import.meta.url));

const NAME = { action: "accept", content: { name: "Zoë" } };
const CAPITAL = { role: "assistant", model: "a model", content: { type: "text", text: "Paris" } };
const ROOTS = { roots: [{ uri: "file:///one" }, { uri: "file:///two" }] };
export const answers = { "elicitation/create": NAME, "sampling/createMessage": CAPITAL, "roots/list": ROOTS };
export const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const PATIENCE = 10_000; // milliseconds, as in tests/conversation.py
const LEVEL = { "io.modelcontextprotocol/logLevel": "info" };

export async function converse(connect) {
  const spec = JSON.parse(process.argv[2]);
  const record = { results: {}, progress: {}, logged: [], questions: [], changed: 0 };
  let waiting = [];
  // Resolves once that is so, or will not be any more; what is heard has it looked at again.
  const until = (holds) => new Promise((resolve) => {
    const late = setTimeout(resolve, PATIENCE);
    waiting.push([holds, () => { clearTimeout(late); resolve(); }]);
    heard();
  });
  const heard = () => (waiting = waiting.filter(([holds, resolve]) => !(holds() && (resolve(), true))));
  const on = {
    request: (method, params) => {
      record.questions.push([method, params?.message ?? params?.messages?.[0].content.text ?? null]);
      return answers[method];
    },
    log: (params) => { record.logged.push(params.data); heard(); },
    changed: () => { record.changed += 1; heard(); },
  };
  const { client, transport, call, version } = await connect(spec, on);
  record.version = version;
  record.tools = (await client.listTools()).tools;

  // One witness is told one line at a time, and closes when it was done.
  const tell = (line) => new Promise((resolve, reject) => {
    const socket = dial(spec.witness, "127.0.0.1", () => socket.write(JSON.stringify(line) + "\n"));
    socket.on("close", resolve).on("error", reject).resume();
  });
  const act = (name) => tell({ do: `${name} ${spec.key}` });
  const step = async (name, tool, given, first = () => {}, signal = undefined) => {
    const progress = (record.progress[name] = []);
    const onprogress = (params) => {
      progress.push(params.progress);
      if (progress.length === 1) first();
    };
    try {
      record.results[name] = { ok: await call({ name: tool, arguments: given, _meta: LEVEL }, { onprogress, signal, timeout: PATIENCE }) };
    } catch (error) {
      record.results[name] = { error: [error.code ?? null, error.message] };
    }
  };

  for (const [name, tool, given] of spec.calls) await step(name, tool, given);
  const key = (name) => ({ key: `${spec.key} ${name}` });
  await step("report", "report", key("report"), () => act("report"));
  // What is said about no request in particular may come on another stream than its answer.
  await until(() => record.logged.length >= 2);
  const abort = new AbortController();
  await step("linger", "linger", key("linger"), () => abort.abort("enough"), abort.signal);
  record.results.linger = { error: [] }; // what it is called differs by SDK
  await step("after", "echo", { text: "still here" });
  if (spec.handshake) {
    await act("listens");
    await step("change", "change", {});
    await until(() => record.changed);
    await step("leave", "leave", key("leave"), () => act("leave"));
    await step("cut", "report", key("cut"), () => act("cut"));
    await until(() => record.logged.length >= 4);
    await act("again");
  } else {
    const subscription = await client.listen({ toolsListChanged: true });
    await step("change", "change", {});
    await until(() => record.changed);
    await subscription.close();
  }
  if (transport.sessionId !== undefined) await transport.terminateSession();
  await client.close();
  process.stdout.write(JSON.stringify(record) + "\n");
}
