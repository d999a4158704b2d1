"""The texts of the sidecar's reference page that do not come from tables in the code."""

from collections.abc import Mapping

OPENING = """
# The sidecar

This page is printed by `mcp-abridge schema --sidecar`, from the code.

`mcp-abridge serve URL`, or `mcp-abridge serve -- COMMAND`, serves MCP over HTTP at `/mcp`. Several
paths, each with its own server, rules and tools, are written in a file: `--config serve.yaml`.

```yaml
{sample}
```

It ends by SIGTERM, SIGINT or SIGHUP, with exit code 0: open requests are answered first, as long as
`--drain` says; a second signal ends it at once, with 130 or 143. With exit code 2 it has not begun:
what is wrong is on stderr, that of files with line and column.

## What it speaks

Before a command: Streamable HTTP of both eras at the path of the route, and below it HTTP+SSE of
2024-11-05, at `/mcp/sse`. Before a URL: at the path of the route, what its server speaks. A server
of HTTP+SSE is then for clients of HTTP+SSE; `mcp-abridge URL` takes either.

The form of an answer is the one that the client's `Accept` prefers. If it prefers none, as most do,
it is the one that the server at the URL chose. A command has chosen none: its answer is JSON, as
long as it is a single response, and an event stream if anything else of the call comes before that
(progress, log lines, questions to the client), so that nothing is lost. It is also a stream if the
command says nothing for 15 seconds: a stream can be kept alive and resumed, JSON cannot.

## What goes before what

What stands at the top of the configuration holds for each route that does not say otherwise, be it
with `null`. But `headers` and `auth` that stand beside an upstream are for no other one, and a
route's `token_env` or `token_file` stands in for both. A flag stands in for what the top says, and
its variable does where the flag is not given; so does `MCP_ABRIDGE_TOKEN`. What a route says itself
goes before all of these. For `store` and `limits`, which no route has for itself, the flag, the
variable, the file and the default count in this order.

The variable of a flag that takes no value means no where it is `0`, `false`, `no`, `off` or empty.
A size is a number of bytes, or a text such as `8kB` or `4MiB`.

## Who may ask

Off loopback, `serve` starts only with a token, or with `--insecure`. A client gives the token as
`Authorization: Bearer`, or in the path where that holds `{token}`; it is never sent to the server.
With `auth: forward`, `Authorization` is the server's, so that a token must be in the path. A page
in a browser may ask if its origin is allowed, or is one of the allowed hosts.

Who has connected may ask nothing, and needs no token for that. The head of a request must come
within 10 seconds, and a connection that was used is closed after 75 seconds without a request. If
`--connections` are open, the idle one that has asked nothing for longest is closed for a new one;
if none is idle, one with a request whose body has not come to its end; if there is none either, the
new one is refused with the status 503, as below. Open requests and event streams are never closed
for others. The default leaves half of the descriptors to servers and files. `--peer-connections`
keeps one address from having all of them. Behind a reverse proxy all clients have its address:
raise it to `--connections` unless the proxy is on this machine, for whose own addresses there is no
such bound unless you set one.
"""

KEYS = """
`mcp-abridge schema --config` prints the JSON Schema of the file, for editors. Keys at the top that
begin with `x-` are yours, for YAML anchors.
"""

TOP = "Beside these, the top may have each key of a route but {own}, as a default."

PATHS: Mapping[str, str] = {
    "/healthz": "200 as long as it runs.",
    "/readyz": (
        "200 where every route can be served, else 503, and while it ends; `routes` in the body "
        "are the paths that cannot, and the log says why. It tells whether commands can be "
        "started: a server at a URL is not asked, nor is the store."
    ),
    "/metrics": (
        "The figures [below](#metrics). Not for a token, but only by an address or an allowed host."
    ),
}
"""The sidecar's own paths, for GET and HEAD."""

STATUSES: Mapping[int, str] = {
    202: "A notification or response was taken that has no answer.",
    204: "The session of a command's server was ended.",
    400: (
        "No proper HTTP; no JSON in the body (or the route's `malformed_status`); headers that do "
        "not fit the body; for a command also no session, a version it does not know, an id that "
        "is neither a text nor an integer or still waits for its answer, or an error of its server "
        "that the stateless protocol answers so."
    ),
    401: "The route wants a token.",
    403: "The Host or the Origin is not allowed.",
    404: "No such path, or no such session any more; for a command also no such method.",
    405: "Not for this method; `Allow` names those that are.",
    406: "Nothing that the client accepts can be answered.",
    408: "The rest of the body did not come, or too slowly.",
    409: "The session has a stream already.",
    413: "The body is over `--max-body`.",
    499: "In the log only: the client went away.",
    500: "The sidecar failed; its log says why.",
    501: "A `Transfer-Encoding` other than `chunked`.",
    502: (
        "The server cannot be reached or started, broke off before its answer began, or redirects "
        "to another origin."
    ),
    503: (
        "`--concurrent` or `--sessions` is reached, or `--connections` or `--peer-connections` "
        "with none that could be closed, or it is ending; `Retry-After` says when to come again."
    ),
}
"""The statuses of the sidecar's own responses, and their causes."""

ANSWERS = """
All other statuses are the server's. Bodies of these are JSON-RPC errors with the request's id where
it is known, and nothing else of the request: code -32700 where nothing could be read or accepted,
-1 where the sidecar or the server failed, else -32600 or what the protocol has for the case. What
it answers of a call itself (a page, a view, a refused argument, a hidden tool) is a 200 like any
other.
"""

METRICS = """
For Prometheus, named as OpenTelemetry names them for MCP where it has a name. Beside these stand
`process_...` (memory, CPU, descriptors). No metric has more than a thousand sets of labels,
whatever clients ask for: the rest is counted as `{other}`.
"""

LABELS: Mapping[str, str] = {
    "mcp_method_name": "The method of the message.",
    "gen_ai_tool_name": "The tool, of a call.",
    "error_type": "The status of a failure, `_OTHER` where it has none; empty for a success.",
    "tool": "The tool.",
    "stage": (
        "`before` and `after` on the wire, `visible_before` and `visible_after` as far as the "
        "model reads it."
    ),
    "outcome": "What became of the response: {outcomes}.",
    "rule": "The name of the rule.",
    "kind": "What the rule warned of.",
    "status": "The status.",
}
"""The meaning of each label of the metrics."""

LOG = """
On stderr, one line each. With `--log-format json` each is an object with `time`, `level`, and
`event` or `message`; as text it begins with the time, in UTC. Texts are cut, and what is empty is
left out. `request` is one line for each HTTP request, at its end (of the own paths only with
`--verbose`): an access log. `call` is a second one for each call of a tool, without who asked and
how, so that these alone are an audit log. `serving` is one for each route at the start. None of
them has a header's value, a token or a query in it. What a command's server writes to its stderr
stands between them as it came.
"""

_REQUEST: Mapping[str, str] = {
    "route": "The path of the route; empty where none was found.",
    "status": "The status of the answer.",
    "seconds": "From the request to the end of its answer.",
    "tool": "The tool, of a call.",
    "client": "What the client calls itself.",
    "session": "What stands for the session: a digest of its id.",
    "received": "The bytes of the server's answer.",
    "sent": "The bytes of the answer to the client.",
    "answered_by": "`upstream`, or `proxy` where the server was not asked or had no answer.",
    "failure": "What went wrong.",
}
LINES: Mapping[str, Mapping[str, str]] = {
    "request": {
        "http": "The HTTP method.",
        "peer": "The address that the request came from.",
        "method": "The method of the message.",
        **_REQUEST,
    },
    "call": _REQUEST,
    "serving": {
        "url": "Where the route is.",
        "upstream": "The URL of its server without credentials, or the first word of the command.",
        "rules": "Its rule files; `bundled` where none are given.",
        "tools": "The only tools that it has, where that is said.",
        "token": "`yes` where clients must give one, else `no`.",
    },
}
"""The fields of the log lines of each event."""
