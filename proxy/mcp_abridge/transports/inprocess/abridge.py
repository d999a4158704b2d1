"""Functions that make results of tools short: without them, an agent's own tools answer in full."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from threading import Lock
from typing import Any, TypeVar, Unpack

from msgspec import Raw
from pydantic_core import PydanticSerializationError, from_json, to_json

from mcp_abridge.document import message
from mcp_abridge.document.message import members, string_at
from mcp_abridge.document.tree import encode, level
from mcp_abridge.session.outputs import Output, Probe, RunInBackground, Shape, ToClient, ToServer
from mcp_abridge.session.session import Session
from mcp_abridge.session.tools.definitions import ToolFacts
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.snapshots import digest
from mcp_abridge.transports.inprocess.parts import AbridgeOptions, Rules, new_states
from mcp_abridge.transports.workers.pictures import with_drawings

Result = TypeVar("Result")
"""What comes out has the kind of what went in: a text, a dict, or an object of the MCP SDK."""

_NO_SERVER = "there is no server to ask: the tool is a function of this program"
_NOTHING = (
    "nothing is kept of an earlier answer to this call (it expired, was short, or was never given);"
    " call again without view first"
)


class Abridge:
    """Makes results of tools short, and answers views from the answers that it has kept.

    `rules` are rule files, folders or bundled names. `client` is the name of the program whose
    limits hold for a result without a rule; `server` is what `server.name` in a rule file asks for.
    For `options` see AbridgeOptions. One object serves any number of threads; a large answer takes
    its thread some milliseconds for each megabyte. Raises RuleErrors if the rules cannot be used.

    >>> abridge = Abridge(budget=500)
    >>> rows = '{"rows":[' + ",".join(f'{{"id":{n}}}' for n in range(200)) + "]}"
    >>> len(abridge.result("list", {}, rows)) < 500 < len(rows)
    True
    >>> abridge.view("list", {}, "rows[3]")["content"][0]["text"]
    '{"view":{"id":3}}'
    """

    def __init__(
        self,
        rules: Rules = None,
        *,
        client: str | None = None,
        server: str | None = None,
        **options: Unpack[AbridgeOptions],
    ) -> None:
        self._session = Session(new_states(rules, options)())
        self._session.rules.rename(client=client, server=server)
        self._lock, self._numbers = Lock(), count(1)

    def tools(self, tools: Sequence[Result]) -> list[Result]:
        """Return the definitions of tools as a model is to see them: with `view`, and by the rules.

        They are dicts or objects of the MCP SDK (MCP: Tools, Tool), and stay of that kind. What
        they declare counts from then on: a tool with `readOnlyHint` may run again for a view.
        """
        listing = self._begin("tools/list", {}, "")
        raws = [Raw(definition(tool)) for tool in tools]
        listing._respond(encode({"tools": raws}))
        by_name = {string_at(raw, "name"): tool for raw, tool in zip(raws, tools, strict=True)}
        edited = level(members(listing._result)["tools"])
        return [like(by_name[string_at(raw, "name")], bytes(raw)) for raw in edited]

    def call(self, tool: str, arguments: Mapping[str, Any], *, caller: str = "") -> "ToolCall":
        """Begin a call of a tool with the arguments that a model gave, perhaps with a `view`.

        `caller` is whose answers are kept and may be looked into: a user, or one conversation of a
        user; calls without one belong together. See ToolCall for what to do next.
        """
        with self._lock:
            if self._session.rules.facts(tool) is None:
                self._session.rules.learn({tool: ToolFacts()})
        own = {name: value for name, value in arguments.items() if (name, value) != ("view", None)}
        scope = digest(caller) if caller else ""
        return self._begin("tools/call", {"name": tool, "arguments": own}, scope)

    def result(
        self, tool: str, arguments: Mapping[str, Any], result: Result, *, caller: str = ""
    ) -> Result:
        """Return the result of a call in short, and keep it for views; an error stays an error.

        `result` is a text, a CallToolResult as a dict, or an object of the MCP SDK (MCP: Tools),
        and so is what is returned: the same object if it stays as it is. Raises TypeError.
        """
        return self.call(tool, arguments, caller=caller).end(result)

    def view(
        self, tool: str, arguments: Mapping[str, Any], view: str, *, caller: str = ""
    ) -> dict[str, Any]:
        """Return a part of the answer to an earlier call, as a CallToolResult; or an error result.

        `view` is an expression as the notices name it, such as "items[0:3]" or "help".
        """
        call = self.call(tool, {**arguments, "view": view}, caller=caller)
        return failure(_NOTHING) if call.answer is None else call.answer

    def _begin(self, method: str, params: dict[str, Any], scope: str) -> "ToolCall":
        number = next(self._numbers)
        line, call = request(number, method, params), ToolCall(self, b"%d" % number)

        def enter() -> Sequence[Output]:
            self._session.state.scope = scope
            return self._session.from_client(line)

        self._perform(call, enter)
        return call

    def _perform(self, call: "ToolCall", enter: Callable[[], Sequence[Output]]) -> None:
        """Enter the session, by one thread at a time, and carry out what it asks for."""
        with self._lock:
            outputs = enter()
        for output in outputs:
            match output:
                case ToServer(raw):
                    call._request = raw
                case ToClient(raw) if "id" in members(raw):  # no notification
                    call._line = raw
                case Shape(job):
                    result = shape(job)
                    if result.drawings:
                        result = with_drawings(job, result)
                    self._perform(call, partial(self._session.shaped, job, result))
                case Probe(_, token):
                    self._perform(call, partial(self._session.unanswered, token, _NO_SERVER))
                case RunInBackground(do, then):
                    self._perform(call, partial(then, do()))


class ToolCall:
    """A call of a tool: with an `answer`, or to be run, and ended with its result.

    `answer` is the CallToolResult for the model if the tool need not run or must not: a part of a
    kept answer, or a refusal; `text` are its texts. While they are None, run the tool with the
    `arguments`, and give its result to `end`.

    >>> call = Abridge().call("read", {"path": "a", "view": "rows[1]"})
    >>> call.text is None, call.arguments, call.end('{"rows": [3, 4]}')
    (True, {'path': 'a'}, '{"view":4}')
    """

    def __init__(self, abridge: Abridge, id: bytes) -> None:
        self._abridge, self._id = abridge, id
        self._request, self._line = b"", b""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the tool: completed by the rules, and without those of the proxy."""
        arguments: dict[str, Any] = params_of(self._request)["arguments"]
        return arguments

    @property
    def answer(self) -> dict[str, Any] | None:
        answer: dict[str, Any] | None = from_json(self._result) if self._line else None
        return answer

    @property
    def text(self) -> str | None:
        return text_of(from_json(self._result)) if self._line else None

    def end(self, result: Result) -> Result:
        """Return the short form of the `result` of the tool, in its kind, as Abridge.result does.

        If there is an answer already, it is that. Raises TypeError.
        """
        if not self._line:
            own = encoded(result)
            self._respond(own)
            if self._result == own:
                return result
        short: Result = like(result, self._result)
        return short

    @property
    def _result(self) -> bytes:
        answer = members(self._line)
        if "error" in answer:
            return dumped(failure(string_at(answer["error"], "message") or ""))
        return bytes(answer["result"])

    def _respond(self, result: bytes) -> None:
        line = message.result(self._id, Raw(result))
        self._abridge._perform(self, partial(self._abridge._session.from_server, line))


def encoded(result: object) -> bytes:
    """Return a result of a tool as JSON; a text is its only block. Raises TypeError."""
    if isinstance(result, str):
        return dumped({"content": [{"type": "text", "text": result}]})
    if isinstance(result, Mapping) and not {"content", "structuredContent"} & result.keys():
        raise TypeError(f"a result has `content`; this one has {list(result)}: pass its JSON text")
    return definition(result)


def definition(value: object) -> bytes:
    """Return a dict, or an object of an SDK, as it stands in a message. Raises TypeError."""
    if isinstance(value, Mapping) or hasattr(value, "model_dump_json"):
        return dumped(value)
    kinds = "a text, a dict or an object of the MCP SDK"
    raise TypeError(f"{kinds} is expected here, not {type(value).__name__}")


def like(example: Any, raw: bytes) -> Any:
    """Return JSON in the kind of `example`."""
    if isinstance(example, str):
        return text_of(from_json(raw))
    if isinstance(example, Mapping):
        return from_json(raw)
    return type(example).model_validate_json(raw)


def failure(text: str) -> dict[str, Any]:
    """Return an error result (MCP: Tools, Error Handling)."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def text_of(result: Mapping[str, Any]) -> str:
    """Return the texts of a result, as most clients show them to a model."""
    blocks = result.get("content", ())
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")


def params_of(raw: bytes) -> dict[str, Any]:
    """Return the params of a request."""
    params: dict[str, Any] = from_json(bytes(members(raw)["params"]))
    return params


def request(number: int, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Return a request as its line. Raises TypeError for what is not JSON."""
    own = {} if params is None else {"params": params}
    return dumped({"jsonrpc": "2.0", "id": number, "method": method, **own})


def dumped(value: object) -> bytes:
    """Return a value, or an object of an SDK, as it stands in a message of the SDK's servers."""
    try:
        return to_json(value, exclude_none=True)
    except PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
