"""The only package that moves bytes: between a client, the session and a server.

A message comes in at a front, the session decides, a back sends it on. Fronts: `stdio.relay` and
`client.bridge` read lines of the client, `sidecar` takes its HTTP requests. Backs: `stdio` and
`sidecar.command` run a server, `client.streamable` and `sidecar.url` reach one at a URL. In
`inprocess` both are the program that imports it.

Each promise and its home; tests/test_architecture.py holds the table. The relay is the second of
several: it wraps a command with threads, since an event loop doubles its start and its memory.

perform what the session returns          driver, stdio.relay, inprocess.abridge
end a call or a query that is overdue     driver, stdio.relay, sidecar.url.route_handler,
                                          inprocess.middleware
read the lines of a child                 stdio.relay, sidecar.command.child
end a child: its stdin, TERM, then KILL   stdio.shutdown, sidecar.command.child
read an HTTP answer, whole or in events   client.endpoint
resume a stream that broke off            client.streamable, sidecar.command.child_session
speak HTTP+SSE of 2024-11-05              client.streamable, sidecar.url.http_sse
ask a guard's query                       driver, stdio.relay, sidecar.url.route_handler,
                                          inprocess.abridge, inprocess.middleware
end a request that was cancelled          client.streamable, sidecar.command.child_session,
                                          sidecar.command.pooled_server, sidecar.url.route_handler
fail what waits for a server that ended   driver, stdio.relay, client.bridge,
                                          sidecar.command.child_session,
                                          sidecar.session_registry, sidecar.url.http_sse

`telemetry` sends the spans and metrics of calls, which `spans` makes of them.

HTTP+SSE has a client's side and a server's. A query is a request like others, but before a URL: the
answer to its POST must not be that of the call, and it ends even if another request takes the id of
the call. What a cancellation ends is the back's own: a request, a stream, a place at a shared
server. The words for a server that ended are the session's (`fail_pending`); who waits for the
server knows when.
"""
