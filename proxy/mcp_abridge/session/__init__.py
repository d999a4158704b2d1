"""One client and one server, without I/O: messages in, Outputs out.

session        the methods that a transport calls; none raises
requests       messages of the client
responses      messages of the server
state          the parts of a session, and its answers if a message cannot be processed
inflight       the requests without a response, their ids and deadlines
own_requests   requests that the proxy makes before a held call
guards         holds a call, asks the server, and decides
first_calls    a page or a view without a stored answer, of a tool that may do harm twice
answer_list    the view `kept`
resources      reads of resources
active_rules   the rules that fit this client and server
tools          tool lists: definitions, arguments, schemas
tool_lists     which list the client has, and whether the rules change it
tasks          calls that become tasks
counts         what goes to the ledger and to the log
ambiguity      messages that two readers parse differently
outputs        the actions that a session asks of its transport
effects        work on the store, and on what a call waits for
tracing        the facts of calls for a tracer

Ids: a request is found by its slot, the exchange and its id. The exchange tells the clients of one
session apart if equal ids may come from several (stateless requests of one caller); it is b"" else.
The scope is whose stored answers a call may read: a caller, perhaps with a session in line two.
"""
