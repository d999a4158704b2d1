"""The arm with a model, before one that is a script: it calls the tool, and knows the answer."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.answers import __main__ as main
from tests.answers import model
from tests.answers.questions import questions
from tests.raw_http import RawRequest, RawServer, whole

QUESTION = next(each for each in questions() if each.name.startswith("get_pods"))
READ = 100


def endpoint(request: RawRequest) -> Iterator[bytes]:
    """Call the tool with the best view if the tool has that argument; else give up."""
    body = request.message
    tools = {each["function"]["name"]: each["function"] for each in body["tools"]}
    views = "view" in tools[QUESTION.tool]["parameters"]["properties"]
    message: dict[str, Any] = {"role": "assistant"}
    if body["messages"][-1]["role"] == "tool":
        message["content"] = f"It is {QUESTION.answer}." if views else "Unknown."
    else:
        view = {"view": QUESTION.views[0]} if views else {}
        function = {"name": QUESTION.tool, "arguments": json.dumps(view)}
        message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    usage = {"prompt_tokens": READ, "completion_tokens": 3}
    yield whole(json.dumps({"choices": [{"message": message}], "usage": usage}).encode())


def test_a_model_is_asked_directly_and_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A_KEY", "a secret")
    with RawServer(endpoint) as server:
        url = server.url.replace("/mcp", "/v1")
        options = ["--model", "stand-in", "--endpoint", url, "--key-env", "A_KEY"]
        monkeypatch.setattr("sys.argv", ["answers", "-k", f"^{QUESTION.name}$", *options])
        assert main.main() == 0

    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows == [
        f"| direct | 0 of 1 | 2.0 | {2 * READ}.0 | 6.0 |",
        f"| ours | 1 of 1 | 2.0 | {2 * READ}.0 | 6.0 |",
    ]
    assert {each.path for each in server.requests} == {"/v1/chat/completions"}
    assert {each.headers["authorization"] for each in server.requests} == {"Bearer a secret"}
    requests = [each.message for each in server.requests]
    assert [each["messages"][1]["content"] for each in requests] == [QUESTION.text] * 4
    direct, ours = (each["messages"][-1]["content"] for each in (requests[1], requests[3]))
    assert len(direct) > 10 * len(ours)


def test_a_right_answer_counts_and_one_to_another_question_does_not() -> None:
    for question, other in pairwise(questions()):
        assert model.answers(question, f"The answer is **{question.answer}**."), question.name
        assert not model.answers(question, other.answer), question.name
