"""The description of each key of rule files and configurations, for editors and references."""

from msgspec import Struct

from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading.rule_model import (
    Blocks,
    CaseSpec,
    Match,
    QuerySpec,
    RuleFileSpec,
    RuleSpec,
)
from proxy.ruleset.rule import Bounds, Definition, Hidden, Messages, ServerMatch
from proxy.transforms import recast
from proxy.transforms.abridge import Abridge
from proxy.transforms.base import Argument
from proxy.transforms.clip import Clip
from proxy.transforms.drop import Drop
from proxy.transforms.elide import Elide
from proxy.transforms.filter import Filter
from proxy.transforms.jmespath import Jmespath
from proxy.transforms.keep import Keep
from proxy.transforms.paginate import Paginate
from proxy.transforms.parse import Parse
from proxy.transforms.project import FromExpression, FromPath, Group, Project
from proxy.transforms.rename import Rename
from proxy.transforms.replace import Replace
from proxy.transforms.shapes import FromArgument
from proxy.transforms.sort import Sort
from proxy.transforms.table import Table
from proxy.transforms.truncate import Truncate

_REFETCH = (
    "Call the server again where no snapshot is left, even if the tool may have side effects."
)
_DROP_ON = "Tools whose calls make the snapshots of this rule untrue."

DESCRIPTIONS: dict[type[Struct], dict[str, str]] = {
    RuleFileSpec: {
        "version": "The version of the rule language: 1.",
        "server": "Which server the file is for; for another one, none of its rules apply.",
        "transforms": (
            "Transforms of your own, in Python: the name of each, and its class as `module:Class`. "
            "The module is a file beside the rule file (`module.py`), or else an installed one; it "
            "is run only with `--allow-python`."
        ),
        "guards": "Guards, in Python, named in the same way; a rule's `guard` is one of them.",
        "expose": "Only these tools (names or globs) are shown and may be called.",
        "defaults": (
            "Keys that every rule of the file starts from; a rule that has the key itself wins. "
            "Not `tools`, `name`, `when` and `tests`."
        ),
        "rules": "The first rule that matches a call applies.",
    },
    ServerMatch: {
        "name": "A glob on the name that the server gives of itself (`serverInfo.name`).",
        "tools": "Tools (names or globs) that the server must have.",
    },
    RuleSpec: {
        "tools": "A tool's name, a glob, or a list of them.",
        "name": "Shown by explain, report and in errors; by default the tools.",
        "when": (
            "A condition over the call's arguments as the client sent them, such as "
            "`action == 'status'`. Where it fails, the rule does not apply; one with bounds, a "
            "guard, `on_failure: refuse` or `validate: refuse` refuses the call instead."
        ),
        "response": "Transforms, in the order in which they run; a list in the list is spliced in.",
        "guard": (
            "Decides on each call before it reaches the server: a name of `guards` at the top of "
            "the file, with its options (`{name: options}`) or alone; `null` for none."
        ),
        "arguments": (
            "Bounds, defaults and aliases of arguments, by name or dotted path (`filter.limit`). "
            "They are checked and completed before the call is sent."
        ),
        "definition": "Edits of the tool's entry in `tools/list`. Not beside `when`.",
        "hide": (
            "The tool is not listed, and a call of it is answered as one of an unknown tool, "
            "without reaching the server. Not beside `when`."
        ),
        "errors": (
            "The transforms for errors, in order: results with `isError`, JSON-RPC errors, what "
            "`error_if` says, and refusals of the proxy's own. No windows."
        ),
        "document": "Which part of the result the transforms work on.",
        "blocks": "Content blocks beside the document that are dropped; a note counts them.",
        "layout": "JSON is written compact, or with the indentation it came with.",
        "error_if": (
            "Results that count as errors, so that `errors` is for them and `response` is not: a "
            "JMESPath condition, or `{match: regular expression}` for a text."
        ),
        "copies": "Which copies of a document that came twice are sent.",
        "on_failure": (
            "Where a step fails, or does not fit the response: `pass` the untouched response, as "
            "without this key, or `refuse`: withhold it, and answer an error that names the rule. "
            "Where the guard fails: `pass` the call on, or `refuse` it, as without this key."
        ),
        "allow_growth": (
            "`false`: where the model would be shown more bytes than came, the response passes as "
            "it came. A fixed shape makes a small result larger, and rightly so."
        ),
        "mode": "`shadow` measures what the rule would save, and changes nothing.",
        "max_bytes": (
            "The most bytes that the model is shown; a longer response is abridged, as a last step."
        ),
        "view": "`false`: the tool gains no argument that shows what `abridge` left out.",
        "output_schema": (
            "The JSON Schema of what the rule yields: where it cannot be derived, or as a "
            "contract. It is advertised, and every result that is no error then carries a "
            "structuredContent. Its root is `type: object`; `nullable: true` admits null."
        ),
        "validate": (
            "Checks every response against `output_schema`: `warn` counts and logs what breaks "
            "it, `refuse` answers an error that says what does."
        ),
        "tests": "Cases that `mcp-abridge test` runs.",
    },
    Definition: {
        "description": "What the tool's description is replaced by.",
        "max_description": "The most characters of the description.",
        "drop": "Keywords to drop from the schemas, such as `examples`; properties always stay.",
        "meta": "Members to put into the tool's `_meta`.",
    },
    Hidden: {
        "code": "The code of the JSON-RPC error.",
        "message": "Its message; `{tool}` in it is the tool's name.",
    },
    Blocks: {"drop": "The types of the blocks to drop."},
    Match: {"match": "Searched for anywhere in the text."},
    Bounds: {
        "default": "What the argument is where the call does not carry it.",
        "minimum": "A lesser number is refused.",
        "maximum": "A greater number is refused.",
        "enum": "Any other value is refused.",
        "max_length": "A text of more characters is refused.",
        "pattern": "A text in which it finds nothing is refused.",
        "type": "A value of another JSON type is refused.",
        "clamp": (
            "A value beyond `minimum`, `maximum` or `max_length` is moved to it, not refused."
        ),
        "alias_of": "A further name for that argument; the server gets the value by that one.",
        "upstream": "`false`: the argument is the rule's alone, and the server never sees it.",
        "message": "What a refusal says in place of its own words: one text, or one by the bound.",
        "description": "The description of the argument that the client is shown.",
    },
    Messages: {
        "minimum": "Said of a lesser number.",
        "maximum": "Said of a greater number.",
        "enum": "Said of a value that is none of these.",
        "max_length": "Said of a longer text.",
        "pattern": "Said of a text in which it finds nothing.",
        "type": "Said of a value of another type.",
    },
    CaseSpec: {
        "name": "Shown where the test fails.",
        "tool": "Which tool is called; needed where `tools` has several, or a glob.",
        "arguments": "The arguments of the call.",
        "given": (
            "What the server answers, a JSON value as one text block. In it, "
            "`{$repeat: value, times: 3}` is an array of as many; `{n}` in its texts is the "
            "number, from 0."
        ),
        "given_text": "The same as a text; or `{$repeat: text, times: 3}`, which is joined.",
        "given_file": (
            "A recorded response, result or exchange, or any other JSON, beside the rule file."
        ),
        "given_result": "The whole CallToolResult, where `structuredContent` or blocks matter.",
        "given_error": "An error result with this text, or with a document as its text.",
        "found": "What the server answers to the question of a guard: a document or a text.",
        "found_error": "The text of the error that it answers to the question.",
        "found_nothing": "`true`: it does not answer the question.",
        "expect": "The document that the client gets, member order aside.",
        "expect_text": "The first text that the client gets; of a list, all texts.",
        "expect_at": "Values in that document, by path.",
        "expect_keys": "How many keys objects in that document have, by path.",
        "absent": "Paths that name nothing in that document.",
        "max_bytes": "The most bytes that the model sees.",
        "min_reduction": "How many times smaller the answer is at least, in bytes the model sees.",
        "expect_error": "The answer is an error with this text, or this document as its text.",
        "untouched": "The response leaves byte for byte as it came.",
        "refused": (
            "The call does not reach the server; the refusal says exactly this, or holds this "
            "document."
        ),
        "asks": "What a guard asks the server first.",
        "upstream": "Exactly the arguments that the server gets; `null`: it gets no call at all.",
        "rejoins": "All pages or windows together give the original.",
        "warns": "The kinds of all warnings, each once.",
    },
    QuerySpec: {
        "tool": "The tool that is called.",
        "arguments": "The arguments of that call.",
    },
    Keep: {
        "paths": "What stays of each object; the result has their order.",
        "at": "The objects to work on; an array means each of its elements.",
    },
    Drop: {
        "paths": "What goes from each object.",
        "at": "The objects to work on; an array means each of its elements.",
    },
    Rename: {"names": "Left the path of a member, right its new name."},
    Project: {
        "fields": "The keys of the new object, and where their values come from.",
        "at": "The objects to make anew; an array means each of its elements.",
        "to": "A new name for what `at` names.",
        "default": "What a key without a value becomes.",
    },
    FromPath: {
        "path": "Where the value stands in the object.",
        "default": "What comes where nothing stands there.",
        "over_null": "`true`: the default comes in place of a null too.",
    },
    FromExpression: {
        "jmespath": "Evaluated over the object.",
        "default": "What comes where the expression gives null.",
    },
    Group: {
        "from": "The inner object.",
        "default": "What a key of this group without a value becomes.",
        "fields": "Keys as above, with paths from the inner object on.",
    },
    Filter: {
        "at": "The array.",
        "where": "A condition over the element.",
        "glob": "A glob on the whole text; `*` and `?` stop at `/`, `**` does not.",
        "match": "A regular expression that is found anywhere in the text.",
        "prefix": "What the text begins with.",
        "field": "The text that `glob`, `match` or `prefix` look at, from the element on.",
        "invert": "Keep the elements that do not fit.",
    },
    Argument: {"argument": "The name of the argument whose value is meant."},
    Sort: {
        "by": "What to compare, from the element on.",
        "at": "The array.",
        "descending": "The greatest first; null and what is missing come last all the same.",
    },
    Elide: {
        "at": "The array.",
        "first": "How many of the first elements stay; 3 where neither option is given, else 0.",
        "last": "How many of the last elements stay; 0 where it is not given.",
    },
    Paginate: {
        "at": "The array, or several that one window moves; each at one place.",
        "limit": "How many elements a page has where the call does not say.",
        "max_limit": "The most that a call may ask for; ten times `limit` where it is not given.",
        "max_offset": "The greatest offset that a call may ask for.",
        "max_bytes": "A page ends before the element that would take it over this many bytes.",
        "as": "The name of the array where the whole document is one; null: it stays an array.",
        "page_info": "Where metadata go: left a path beside the array, right what stands there.",
        "arguments": "Other names for the arguments; a name given here is advertised for certain.",
        "refetch": _REFETCH,
        "drop_on": _DROP_ON,
    },
    Table: {"at": "The array of like objects."},
    Clip: {
        "at": "The texts, or arrays of texts.",
        "max_chars": "How many characters stay. This option, the next, or both must be given.",
        "max_lines": "How many lines stay.",
    },
    Truncate: {
        "at": "The text, at one place.",
        "max_length": "How many characters a window has where the call does not say.",
        "from": "From which end windows are counted.",
        "boundary": "Whether a window may end within a word.",
        "arguments": "Other names for the arguments; a name given here is advertised for certain.",
        "hint": "Whether the text itself says, too, how to go on.",
        "refetch": _REFETCH,
        "drop_on": _DROP_ON,
    },
    Parse: {
        "as": "What the text is read as.",
        "at": "The texts.",
        "after": "The content begins behind the first match of this.",
        "fence": "The content is the first fenced block of this language.",
        "split": "What ends a record: a regular expression; a blank line where it is not given.",
    },
    Replace: {
        "pattern": "What to replace.",
        "with": r"What to put there; `\1` is what the first group matched.",
        "at": "The texts, or arrays of texts.",
    },
    Jmespath: {
        "expression": "Evaluated over each value at `at`.",
        "at": "The values.",
    },
    recast.Recast: {
        "cases": "What the document may be, and what becomes of it; the first that fits counts.",
        "common": "What the shapes of all cases have; `to` is laid over it.",
        "unless": "A condition over the document; where it holds, the document stays as it is.",
        "vocabulary": "Left a path in the shapes, right the only words that may stand there.",
    },
    recast.RecastCase: {
        "match": "Searched for in a text; its named groups are captures. Not beside `where`.",
        "where": "A condition over the document; of a text, `@` is the text.",
        "to": "The shape, as far as it is this case's own.",
    },
    FromArgument: {
        "argument": "The name of the argument, or a dotted path into one.",
        "default": "What comes where the call does not carry it, or as null.",
    },
    Abridge: {
        "max_bytes": "The most bytes of the document; without it, the rule's own bound counts.",
    },
    configkeys.ConfigSpec: {
        "version": "The version of the configuration: 1.",
        "store": (
            "Where windows and views are kept; replicas share a Redis, `redis://redis:6379/0`."
        ),
        "limits": "What the sidecar takes on at most.",
        "routes": "One for each path; without them there is one, `/mcp`.",
    },
    configkeys.RouteSpec: {
        "path": "What clients ask for. One segment may be `{token}`: there they give a token.",
        "upstream": (
            "The server: a URL, or what starts a stdio server. Here or at the top it must be said."
        ),
        "rules": (
            "Rule files, directories of them, names of bundled ones, or `none`. Paths start where "
            "the configuration lies."
        ),
        "budget": (
            "The most bytes of a response that no rule covers; `auto` is what suits the client."
        ),
        "tools": "Globs: the only tools that are shown and may be called.",
        "deadline_seconds": (
            "How long a call may go without an answer and without news of its progress."
        ),
        "token_env": "The variable that holds the token that clients must give.",
        "token_file": (
            "Holds such tokens, one in each line, any of which will do. Not beside `token_env`."
        ),
        "hosts": (
            "What the Host of a request may be: `mcp.example.org` with any port, "
            "`localhost:8808`, `*.example.org`."
        ),
        "origins": "Whose pages may ask, beside those of the hosts: `https://app.example.org`.",
        "auth": "With `forward`, the client's Authorization and Cookie go to the server.",
        "headers": (
            "Sent to the server with every request, in place of the client's own; `${NAME}` in a "
            "value is a variable of the environment."
        ),
        "listen": "Where to listen; port 0 is any that is free.",
        "malformed_status": "The status of the answer to a body that is no JSON.",
        "passes": (
            "`true`: this is no MCP, and every request under `path` goes to the server as it is."
        ),
    },
    configkeys.Command: {"command": "The program and its arguments, each a text of its own."},
    configkeys.LimitsSpec: {
        "body": "The most bytes of a request's body.",
        "message": "The most bytes of one message of the server; a longer one is an error.",
        "concurrent": (
            "The most requests that are open at once, and the most event streams: they are "
            "counted apart."
        ),
        "connections": (
            "The most connections of clients; beyond it, idle ones are closed for new ones."
        ),
        "peer_connections": (
            "The most of them from one address: that of a reverse proxy, if one is in front."
        ),
        "sessions": "The most sessions of each route before a command.",
        "idle_seconds": "How long after its last use such a session ends.",
        "children": "The most processes that serve the stateless requests of such a route.",
        "drain_seconds": "How long open requests have when the sidecar is asked to end.",
        "snapshots": "The most bytes of answers kept in memory for later pages and views.",
        "snapshot_seconds": "How long after its last use an answer is kept for that.",
    },
}
