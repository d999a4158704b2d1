"""Redaction: which members and texts are masked, and that nothing else of a message changes."""

import pytest
from mcp_abridge.testing.redaction import Redaction

from tests.builders import answer, call, line

MASKED = Redaction(["password", "api_key", "sk-[a-z0-9]+"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password: hunter two\nnext", "password: ***\nnext"),
        ("GET /?a=1&password=x&b=2", "GET /?a=1&password=***&b=2"),
        ("{'password': 'abc'}", "{'password': ***"),
        ('{"password": "a \\" b", "n": 1}\n{"n": 2}', '{"password": "***", "n": 1}\n{"n": 2}'),
        ('{"password": 12, "n": 1}\n{"n": 2}', '{"password": "***", "n": 1}\n{"n": 2}'),
        ('{\n  "API_KEY": {"a": 1},\n  "n": 1.0\n}', '{\n  "API_KEY": "***",\n  "n": 1.0\n}'),
        ('["sk-ab1", "task"]', '["***","task"]'),
        ('{"spaced" : 1.0}', '{"spaced" : 1.0}'),
        ("my passwords are long", "my passwords are long"),
    ],
)
def test_texts_and_the_json_in_them_are_masked(text: str, masked: str) -> None:
    assert MASKED.text(text) == masked


def test_members_that_a_reader_needs_stay_in_a_message() -> None:
    everything = Redaction(["id", "name", "method", "tools", "result"])
    request = call("t", {"id": 1, "deep": [{"name": [2]}]}, id=7)
    assert everything.request(request) == call("t", {"id": "***", "deep": [{"name": "***"}]}, id=7)
    response = answer({"content": [{"type": "text", "text": '{"id":5}'}], "id": 3}, 7)
    masked = answer({"content": [{"type": "text", "text": '{"id":"***"}'}], "id": "***"}, 7)
    assert everything.response(response) == masked
    error = line(id=7, error={"code": 1, "message": "no id: 5"})
    assert everything.response(error) == line(id=7, error={"code": 1, "message": "no id: ***"})
