"""A transparent MCP proxy that compacts tool responses by rules written in YAML.

One word for one thing, everywhere:

Message     one JSON-RPC message; `raw` is always its bytes
Session     pairs calls with responses, between one client and one server
Transport   moves raw messages; the only part that does I/O
Rule        what happens to a tool's calls and responses; a RuleSet is several, in order
Transform   one step that changes a document; a Pipeline is a rule's transforms in order
Guard       decides what becomes of a call before it reaches the server
Probe       what the proxy itself asks the server, on behalf of a guard
Contract    the schema that a rule promises for what it yields
Warned      something that is counted and logged, and stops nothing
Document    the value inside a tool result
Snapshot    a document kept, from which windows and views are cut
Notice      what the proxy tells the model about something it left out
Meter       counts bytes before and after, on the wire and as the model sees them
Ledger      the Meter's record on disk
Case        a test written beside a rule
"""
