"""One arm's session with its command: runs the steps of a question, and counts."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from tests.answers.arm import LIMIT, Arm, Call, Look, Reply, Result
from tests.answers.evidence import Evidence
from tests.answers.question import Question
from tests.wire import Wire

SERVER = [sys.executable, str(Path(__file__).parent / "server.py")]
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}}


Watch = Callable[[Call | Look, Reply], object]


class Attempt(Struct, frozen=True):
    """How an arm fared with a question.

    `read` are the bytes of the results that the model read.
    `never` is "" if the evidence stood, else the reason: `lost` (no way on), `refused` (an error)
    or `limit` (too many calls).
    """

    question: str
    calls: int
    read: int
    never: str = ""


class Session:
    """A running command, initialized."""

    def __init__(self, arm: Arm, wire: Wire) -> None:
        self._arm, self._wire, self._number = arm, wire, 0
        self._request("initialize", **HANDSHAKE, clientInfo={"name": "answers", "version": "1"})
        wire.send("notifications/initialized")
        tools = self._request("tools/list")["result"]["tools"]
        self.tools: list[dict[str, Any]] = tools

    def _request(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = orjson.loads(self._wire.send(method, self._number, **params)[-1])
        return message

    def ask(self, question: Question, watch: Watch | None = None) -> Attempt:
        """Run the arm's steps until the evidence stands; `watch` is told of each."""
        steps = self._arm.steps(question)
        evidence = Evidence(question)
        calls = read = 0
        never = "lost"
        reply: Reply | None = None
        while calls < LIMIT:
            try:
                step = next(steps) if reply is None else steps.send(reply)
            except StopIteration:
                break
            reply, never = self._reply(step)
            calls += 1
            read += len(reply.text.encode())
            request = "" if isinstance(step, Look) else orjson.dumps(step.arguments).decode()
            if watch:
                watch(step, reply)
            texts = [step.before + reply.text, *self._arm.readings(reply.text)]
            if any(evidence.stands_with(each, request) for each in texts):
                never = ""
                break
        else:
            never = "limit"
        steps.close()
        return Attempt(question.name, calls, read, never)

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        reply, reason = self._reply(Call(tool, arguments))
        return reply.text or f"({reason})"

    def _reply(self, step: Call | Look) -> tuple[Reply, str]:
        """Return the answer to a step, and the reason if it ends the way."""
        if isinstance(step, Look):
            return Reply(step.text, {}), "lost"
        answer = self._request("tools/call", name=step.tool, arguments=step.arguments)
        if "error" in answer:
            return Reply(str(answer["error"].get("message", "")), {}), "refused"
        result: Result = answer["result"]
        return Reply(self._arm.show(result), result), "refused" if result.get("isError") else "lost"


@contextmanager
def open_session(arm: Arm, kind: str = "first") -> Iterator[Session]:
    """Start the arm's command before a server with the results of a set."""
    with Wire(arm.command([*SERVER, kind])) as wire:
        yield Session(arm, wire)


def attempts(arm: Arm, questions: Sequence[Question], watch: Watch | None = None) -> list[Attempt]:
    results = []
    for kind, members in groupby(questions, key=lambda question: question.set):
        some = list(members)
        for group in [[each] for each in some] if arm.fresh else [some]:
            with open_session(arm, kind) as session:
                results += [session.ask(question, watch) for question in group]
    return results
