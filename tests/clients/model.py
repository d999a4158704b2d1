"""A stand-in for the model APIs of Anthropic, OpenAI (Responses and Chat Completions) and Gemini.

On loopback it plays a plan of tool calls against the client that connects, and keeps the last
conversation: that has what the model was shown of each result. The step that is due is the number
of results in the request, so a client may repeat a request.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

from tests.clients.server import Json
from tests.raw_http import RawRequest, RawServer, whole


class Step(NamedTuple):
    """A call for the model to make; `further` makes the one that the last notice names."""

    tool: str
    arguments: Mapping[str, Any] = MappingProxyType({})
    further: bool = False


class VisibleResult(NamedTuple):
    text: str
    pictures: int = 0


class Move(NamedTuple):
    """The next action of the model.

    `value` is the text, the arguments, the tool to search for or the script; `definition` is that
    of the tool `name`.
    """

    kind: Literal["text", "call", "search", "script"]
    value: Any
    name: str = ""
    definition: Mapping[str, Any] = MappingProxyType({})

    @property
    def arguments(self) -> Json:
        search = {"query": self.value, "max_results": 5}
        return search if self.kind == "search" else self.value


Phrase = Callable[[str, Json], tuple[str, Any]]
"""How a model calls a tool: the name and arguments, or a script, of the call that it makes."""


def directly(tool: str, arguments: Json) -> tuple[str, Any]:
    return tool, arguments


SEARCH = ("toolsearch", "tool_search")
VIEW = re.compile(r"call again with (\w+)='([^']*)'")
COMMAND = re.compile(
    r"run ((?:'[^']+mcp-abridge'|\S*mcp-abridge) view (?:--\S+ )*(?:'[^']+'|\S+) '[^']+')"
)  # in an answer that `hook` cut
URI = re.compile(r"read (\S+[#&]view=[^\s;\"\\]+)")  # in a resource


def unescaped(text: str) -> str:
    """Return a text without the escapes of JSON, or of Python's repr, however often it has them."""
    while '\\"' in text or "\\n" in text or "\\'" in text:
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n")
        text = text.replace("\\'", "'")
    return text


def visible_in(content: Any) -> VisibleResult:
    """Join the texts of a tool result's content, in any of OpenAI's and Anthropic's forms."""
    texts, pictures = [], 0
    for part in content if isinstance(content, list) else [content or ""]:
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type") in ("text", "input_text", "output_text"):
            texts.append(part.get("text", ""))
        elif "image" in str(part.get("type")):
            pictures += 1
        else:
            texts.append(json.dumps(part))
    return VisibleResult("\n".join(texts), pictures)


class Anthropic:
    path = r"/messages$"

    def results(self, body: Json) -> list[VisibleResult]:
        contents = [each["content"] for each in body["messages"]]
        blocks = [block for each in contents if isinstance(each, list) for block in each]
        searches = {each["id"] for each in blocks if each.get("name", "").lower() in SEARCH}
        return [
            visible_in(each.get("content"))
            for each in blocks
            if each["type"] == "tool_result" and each["tool_use_id"] not in searches
        ]

    def tools(self, body: Json) -> Iterator[tuple[str, Json]]:
        for each in body.get("tools") or []:
            yield each.get("name", ""), each

    def whole(self, move: Move, number: int) -> Json:
        block: Json = {"type": "text", "text": move.value}
        if move.kind != "text":
            call = {"id": f"toolu_{number}", "name": move.name, "input": move.arguments}
            block = {"type": "tool_use", **call}
        return {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "stand-in",
            "content": [block], "usage": {"input_tokens": 100, "output_tokens": 10},
            "stop_reason": "end_turn" if move.kind == "text" else "tool_use",
        }  # fmt: skip

    def events(self, whole: Json) -> list[Any]:
        [block] = whole["content"]
        empty: Json = {"text": ""}
        delta = {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            empty = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        end = {"stop_reason": whole["stop_reason"]}
        return [
            {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": block | empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}},
            {"type": "message_stop"},
        ]


class Responses:
    path = r"/responses$"

    def results(self, body: Json) -> list[VisibleResult]:
        kinds = ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output")
        return [visible_in(each["output"]) for each in body["input"] if each.get("type") in kinds]

    def tools(self, body: Json) -> Iterator[tuple[str, Json]]:
        yield from self._tools(body.get("tools") or [], "")
        for each in body["input"]:
            # Tools that a search brought in.
            if each.get("type") in ("tool_search_output", "additional_tools"):
                yield from self._tools(each.get("tools") or [], "")

    def _tools(self, listed: list[Json], namespace: str) -> Iterator[tuple[str, Json]]:
        for each in listed:
            if each.get("type") == "namespace":
                yield from self._tools(each.get("tools") or [], each["name"])
            else:
                name = each.get("name") or each["type"]
                yield f"{namespace}__{name}" if namespace else name, {
                    **each, "namespace": namespace, "name": name
                }  # fmt: skip

    def whole(self, move: Move, number: int) -> Json:
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        return {"id": f"resp_{number}", "output": [self._item(move, number)], "usage": usage}

    def _item(self, move: Move, number: int) -> Json:
        item: Json = {"id": f"item_{number}", "status": "completed"}
        call = item | {"call_id": f"call_{number}"}
        if move.kind == "text":
            content = [{"type": "output_text", "text": move.value, "annotations": []}]
            return item | {"type": "message", "role": "assistant", "content": content}
        if move.kind == "search":
            kind = {"type": "tool_search_call", "execution": "client"}
            return call | kind | {"arguments": {"query": move.value, "limit": 5}}
        call["name"] = move.definition["name"]
        if move.definition["namespace"]:
            call["namespace"] = move.definition["namespace"]
        if move.kind == "script":
            return call | {"type": "custom_tool_call", "input": move.value}
        return call | {"type": "function_call", "arguments": json.dumps(move.value)}

    def events(self, whole: Json) -> list[Any]:
        [item] = whole["output"]
        return [
            {"type": "response.created", "response": {"id": whole["id"], "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]


class Chat:
    path = r"/chat/completions$"

    def results(self, body: Json) -> list[VisibleResult]:
        return self._answers(body, of_searches=False)

    def _answers(self, body: Json, *, of_searches: bool) -> list[VisibleResult]:
        calls = [call for each in body["messages"] for call in each.get("tool_calls") or []]
        searches = {each["id"] for each in calls if each["function"]["name"].lower() in SEARCH}
        return [
            visible_in(each.get("content"))
            for each in body["messages"]
            if each["role"] == "tool" and (each["tool_call_id"] in searches) == of_searches
        ]

    def tools(self, body: Json) -> Iterator[tuple[str, Json]]:
        for each in body.get("tools") or []:
            yield each["function"]["name"], each["function"]
        # Qwen Code lists what a search finds in its answer alone.
        for answer in self._answers(body, of_searches=True):
            for text in re.findall(r"<function>(\{.*\})</function>", answer.text):
                definition = json.loads(text)
                yield definition["name"], definition

    def whole(self, move: Move, number: int) -> Json:
        message: Json = {"role": "assistant", "content": move.value}
        if move.kind != "text":
            function = {"name": move.name, "arguments": json.dumps(move.arguments)}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        reason = "stop" if move.kind == "text" else "tool_calls"
        return {
            "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0,
            "model": "stand-in",
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        }  # fmt: skip

    def events(self, whole: Json) -> list[Any]:
        [choice] = whole["choices"]
        delta = dict(choice["message"])
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **delta["tool_calls"][0]}]
        head = {**whole, "object": "chat.completion.chunk", "usage": None}
        first = {"index": 0, "delta": delta, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        usage = head | {"choices": [], "usage": whole["usage"]}
        return [head | {"choices": [first]}, head | {"choices": [last]}, usage, "[DONE]"]


class GenerateContent:
    path = "enerateContent$"

    def results(self, body: Json) -> list[VisibleResult]:
        parts = [part for each in body["contents"] for part in each["parts"]]
        return [
            self._visible_in(part["functionResponse"])
            for part in parts
            if "functionResponse" in part
        ]

    def _visible_in(self, function: Json) -> VisibleResult:
        response = function.get("response") or {}
        text = response.get("output") if [*response] == ["output"] else None
        pictures = len(function.get("parts") or [])
        whole = json.dumps(response, ensure_ascii=False)
        return VisibleResult(text if isinstance(text, str) else whole, pictures)

    def tools(self, body: Json) -> Iterator[tuple[str, Json]]:
        for group in body.get("tools") or []:
            for each in group.get("functionDeclarations") or []:
                yield each["name"], each

    def whole(self, move: Move, number: int) -> Json:
        part: Json = {"text": move.value}
        if move.kind == "call":
            call = {"name": move.name, "args": move.value}
            part = {"functionCall": call, "thoughtSignature": "c2ln"}
        content = {"role": "model", "parts": [part]}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 100, "totalTokenCount": 110},
            "modelVersion": "stand-in", "responseId": f"r{number}",
        }  # fmt: skip

    def events(self, whole: Json) -> list[Any]:
        return [whole]


# What the requests of each have, and how it answers, whole or in events.
Api = Anthropic | Responses | Chat | GenerateContent
APIS: tuple[Api, ...] = (Anthropic(), Responses(), Chat(), GenerateContent())


class Model:
    """Serves on a free port of loopback while it is entered.

    `results` are those of the longest conversation, in the order of the plan.
    """

    def __init__(self, plan: list[Step], phrase: Phrase = directly) -> None:
        self.results: list[VisibleResult] = []
        self._plan = plan
        self._phrase = phrase
        self._arguments: list[Json] = []
        self._number = 0
        self._searches = 0
        self._server = RawServer(self._answer)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._server.__exit__(*error)

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        path = request.path.partition("?")[0]
        api = next((each for each in APIS if re.search(each.path, path)), None)
        if request.method != "POST":
            models = {"data": [{"id": "stand-in", "object": "model"}], "models": []}
            yield _json(models) if request.method == "GET" else whole(b"", "501 Not Implemented")
        elif re.search("count_?tokens$", path, re.IGNORECASE):
            # Claude Code counts a result's tokens so.
            yield _json({key: len(request.body) // 4 for key in ("input_tokens", "totalTokens")})
        elif api is None:
            yield _json({}, "404 Not Found")
        else:
            response = self._respond(api, request.message)
            stream = request.message.get("stream") or "stream" in path
            yield _stream(api, response) if stream else _json(response)

    def _respond(self, api: Api, body: Json) -> Json:
        self._number += 1
        results = api.results(body)
        if len(results) > len(self.results):
            self.results = results
        return api.whole(self._move(dict(api.tools(body)), results), self._number)

    def _move(self, tools: dict[str, Json], results: list[VisibleResult]) -> Move:
        if len(results) >= len(self._plan):
            return Move("text", "All done.")
        arguments = self._arguments_for(results)
        tool, value = self._phrase(self._plan[len(results)].tool, arguments)
        name = next((each for each in tools if re.search(rf"(^|[^a-z]){tool}$", each)), None)
        if name is not None:
            self._arguments[len(results) :] = [arguments]
            kind: Literal["script", "call"] = "script" if isinstance(value, str) else "call"
            return Move(kind, value, name, tools[name])
        search = next((each for each in tools if each.lower() in SEARCH), None)
        if search is None or self._searches > 3 * len(self._plan):
            return Move("text", "There is no such tool.")
        self._searches += 1
        return Move("search", tool, search)

    def _arguments_for(self, results: list[VisibleResult]) -> Json:
        step = self._plan[len(results)]
        if not step.further:
            return dict(step.arguments)
        text = unescaped(results[-1].text)
        if command := COMMAND.search(text):
            return {"command": command[1], "description": "-"}
        if uri := URI.search(text):
            return {**self._arguments[-1], "uri": uri[1]}
        return {**self._arguments[-1], **dict(VIEW.findall(text))}


def _json(value: Json, status: str = "200 OK") -> bytes:
    return whole(json.dumps(value).encode(), status)


def _stream(api: Api, response: Json) -> bytes:
    lines = []
    for event in api.events(response):
        if "type" in event:
            lines += [f"event: {event['type']}\n"]
        text = event if isinstance(event, str) else json.dumps(event)
        lines += [f"data: {text}\n\n"]
    return whole("".join(lines).encode(), "200 OK", "Content-Type: text/event-stream")
