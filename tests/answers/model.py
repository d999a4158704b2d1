"""The arm with a real model: each question directly and through the proxy, by a chat endpoint.

The model gets the server's tools as the server or the proxy lists them, and the question. It has
answered if its last text has the words of the answer. Figures are those of the endpoint.
"""

import re
import urllib.request
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import orjson
from msgspec import Struct

from tests.answers.arm import Arm
from tests.answers.direct import Direct
from tests.answers.evidence import stands_in
from tests.answers.ours import Best
from tests.answers.question import Question
from tests.answers.session import Session, open_session

_TURNS = 20  # requests for one question
_SECONDS = 300
_SYSTEM = "Answer the question with the tools. Then give the answer alone, as short as it can be."
_FILLERS = frozenset(["at", "by", "file", "for", "from", "in", "of", "set", "the", "to", "value"])

Json = dict[str, Any]


class Endpoint(Struct, frozen=True):
    """A chat endpoint as OpenAI's: `url` is its base, to which /chat/completions is added."""

    url: str
    model: str
    key: str = ""

    def complete(self, messages: list[Json], tools: list[Json]) -> Json:
        body = {"model": self.model, "messages": messages, "tools": tools}
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        url = f"{self.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(url, orjson.dumps(body), headers)
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:
            completion: Json = orjson.loads(response.read())
            return completion


class Talk(Struct, frozen=True):
    """How a model fared with a question: requests, and the tokens that it read and wrote."""

    answered: bool
    turns: int
    input_tokens: int
    output_tokens: int


def talk(endpoint: Endpoint, session: Session, question: Question) -> Talk:
    tools = [_function(tool) for tool in session.tools]
    messages = [_message("system", _SYSTEM), _message("user", question.text)]
    turns = input_tokens = output_tokens = 0
    text = ""
    while turns < _TURNS:
        completion = endpoint.complete(messages, tools)
        usage = completion.get("usage") or {}
        turns += 1
        input_tokens += usage.get("prompt_tokens", 0)
        output_tokens += usage.get("completion_tokens", 0)
        message = completion["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            text = message.get("content") or ""
            break
        for call in message["tool_calls"]:
            output = _call_result(session, call["function"])
            messages.append({**_message("tool", output), "tool_call_id": call["id"]})
    return Talk(answers(question, text), turns, input_tokens, output_tokens)


def answers(question: Question, text: str) -> bool:
    """Return True if a text has each word of the answer, except those of `_FILLERS`.

    Commas between digits do not matter.

    >>> pods = Question(name="", group="texts", tool="", text="", answer="4123 by Joe")
    >>> answers(pods, "Issue **4,123**, of joe."), answers(pods, "Issue 4123.")
    (True, False)
    """
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower())
    words = re.split(r"[\s,;=\"()]+|:\s", question.answer.lower())
    return all(stands_in(word, text) for word in words if word and word not in _FILLERS)


def _message(role: str, content: str) -> Json:
    return {"role": role, "content": content}


def _function(tool: Json) -> Json:
    names = {"name": tool["name"], "description": tool.get("description", "")}
    return {"type": "function", "function": {**names, "parameters": tool["inputSchema"]}}


def _call_result(session: Session, function: Json) -> str:
    try:
        arguments = orjson.loads(function.get("arguments") or "{}")
    except orjson.JSONDecodeError as error:
        return f"the arguments are no JSON: {error}"
    return session.call(function["name"], arguments)


def report(endpoint: Endpoint, questions: Sequence[Question], budget: str | None = None) -> str:
    ours = Best(*(("--budget", budget) if budget else ()))
    ours.name = "ours"
    lines = [
        f"{len(questions)} questions to {endpoint.model}",
        "",
        "| | answered | turns each | tokens read each | tokens written each |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    arms: tuple[Arm, ...] = (Direct(), ours)
    for arm in arms:
        talks = []
        for question in questions:
            with open_session(arm) as session:
                talks.append(talk(endpoint, session, question))
        lines.append(_row(arm.name, talks))
    return "\n".join(lines)


def _row(name: str, talks: Sequence[Talk]) -> str:
    means = [
        fmean(values)
        for values in zip(*((t.turns, t.input_tokens, t.output_tokens) for t in talks), strict=True)
    ]
    count = sum(each.answered for each in talks)
    cells = [name, f"{count} of {len(talks)}", *(f"{mean:,.1f}" for mean in means)]
    return f"| {' | '.join(cells)} |"
