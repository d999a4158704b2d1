"""A transparent MCP proxy that compacts tool responses by rules written in YAML.

A page for maintainers. Each package imports those above it only (LEVELS in
tests/test_architecture.py has the few on one level):

errors      every error raised on purpose, and "did you mean"
system      the calls that differ between platforms
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
transports  the I/O of messages: stdio, http, client (a URL for stdio), sidecar (HTTP), workers,
            inprocess (the public module: Abridge, AbridgeMiddleware)
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

To add a transform, a function, a client, a verb or a guarantee, and the suites: CONTRIBUTING.md.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp_abridge.errors import RuleErrors
    from mcp_abridge.transports.inprocess.abridge import Abridge, ToolCall
    from mcp_abridge.transports.inprocess.middleware import AbridgeMiddleware

# The public module, for servers and agents in Python: examples/in-process/README.md.
__all__ = ["Abridge", "AbridgeMiddleware", "RuleErrors", "ToolCall"]

_HOMES = {"AbridgeMiddleware": "transports.inprocess.middleware", "RuleErrors": "errors"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported late: the wrapper needs none of them, and does not wait for them.
    from importlib import import_module

    home = _HOMES.get(name, "transports.inprocess.abridge")
    return getattr(import_module(f"{__name__}.{home}"), name)
