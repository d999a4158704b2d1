"""The arm with a model, before one that is a script: it calls the tool, and knows the answer."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest

from tests.answers import __main__ as main
from tests.answers import model
from tests.answers.questions import questions

QUESTION = next(each for each in questions() if each.name.startswith("get_pods"))
READ = 100


class Endpoint(BaseHTTPRequestHandler):
    """Calls the tool with the best view if the tool has that argument; else gives up."""

    requests: list[dict[str, Any]]

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        message: dict[str, Any] = {"role": "assistant"}
        if body["messages"][-1]["role"] == "tool":
            message["content"] = f"It is {QUESTION.answer}." if self._views(body) else "Unknown."
        else:
            view = {"view": QUESTION.views[0]} if self._views(body) else {}
            function = {"name": QUESTION.tool, "arguments": json.dumps(view)}
            message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
        usage = {"prompt_tokens": READ, "completion_tokens": 3}
        raw = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _views(self, body: dict[str, Any]) -> bool:
        tools = {each["function"]["name"]: each["function"] for each in body["tools"]}
        return "view" in tools[QUESTION.tool]["parameters"]["properties"]


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    requests: list[dict[str, Any]] = []
    handler = type("Handler", (Endpoint,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
        server.shutdown()


def test_a_model_is_asked_directly_and_through_the_proxy(
    endpoint: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url, requests = endpoint
    monkeypatch.setenv("A_KEY", "a secret")
    options = ["--model", "stand-in", "--endpoint", url, "--key-env", "A_KEY"]
    monkeypatch.setattr("sys.argv", ["answers", "-k", f"^{QUESTION.name}$", *options])
    assert main.main() == 0

    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows == [
        f"| direct | 0 of 1 (0 to 79 %) | 2.0 | {2 * READ}.0 | 6.0 |",
        f"| ours | 1 of 1 (21 to 100 %) | 2.0 | {2 * READ}.0 | 6.0 |",
    ]
    assert {each["path"] for each in requests} == {"/v1/chat/completions"}
    assert {each["key"] for each in requests} == {"Bearer a secret"}
    assert {each["model"] for each in requests} == {"stand-in"}
    asked = [each["messages"][1]["content"] for each in requests]
    assert asked == [QUESTION.text] * 4
    direct, ours = (each["messages"][-1]["content"] for each in (requests[1], requests[3]))
    assert len(direct) > 10 * len(ours)


def test_a_right_answer_counts_and_one_to_another_question_does_not() -> None:
    for question, other in pairwise(questions()):
        assert model.answers(question, f"The answer is **{question.answer}**."), question.name
        assert not model.answers(question, other.answer), question.name
