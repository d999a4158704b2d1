"""What a model is shown of answers that other proxies hide, spoil, cut or hang on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.asking import Client, Way, on_stdio, over_http
from tests.faults.sidecar import call

SERVER = ("--", sys.executable, str(Path(__file__).with_name("changing.py")))
EACH = [
    pytest.param(on_stdio, marks=pytest.mark.fault(48, "stdio")),
    pytest.param(over_http, marks=pytest.mark.fault(48, "http")),
]
pytestmark = pytest.mark.parametrize("way", EACH)
BUDGET = 8000
BOUNDED = f"version: 1\nrules: [{{tools: '*', max_bytes: {BUDGET}}}]\n"
CUT = """\
version: 1
rules:
  - {tools: huge, response: [{keep: [rows.id, source]}, {paginate: {at: rows, limit: 3}}]}
  - {tools: raw, response: [{drop: secret}]}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(CUT)
    return file


def answer(client: Client, tool: str, **arguments: Any) -> bytes:
    """Call a tool and return its answer."""
    return client.ask(call(2, tool, arguments=arguments))


def result(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw)["result"]
    return found


@pytest.mark.parametrize("text", [CUT, BOUNDED], ids=["page", "budget"])
def test_20_mb_in_two_copies_are_made_short_in_both(way: Way, text: str, rules: Path) -> None:
    rules.write_text(text)
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "huge", rows=29_000)
        assert len(raw) < 3 * BUDGET
        found = result(raw)
        first = found["structuredContent"]
        assert json.loads(found["content"][0]["text"]) == first
        assert 0 < len(first["rows"]) < 30
        assert first["source"] == "here"
        # What follows is not held up by it.
        assert answer(client, "note", says="next").endswith(b'"text":"next"}]}}')


def test_a_long_error_shows_its_last_lines_too_and_the_others_on_demand(
    way: Way, rules: Path
) -> None:
    rules.write_text(BOUNDED)
    said = "the build failed: " + "a line of the log\n" * 18_000 + "no space left on the disk"
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "wrong", says=said)
        shown, _ = (block["text"] for block in result(raw)["content"])
        assert len(raw) < BUDGET + 1000
        assert shown.startswith("the build failed: a line of the log\n")
        assert shown.endswith("a line of the log\nno space left on the disk")
        rest = result(answer(client, "wrong", says=said, view="text[100000:102000]"))
    assert rest["content"][0]["text"] == said[100_000:102_000]
    assert rest["isError"] is True
    assert result(raw)["isError"] is True


SPELLED = (
    r'{"price":1.10,"huge":1e400,"long":12345678901234567890123,"zero":-0,"path":"\/a","secret":1}'
)


@pytest.mark.parametrize("where", ["structured", "text"])
def test_what_is_kept_is_spelled_as_it_came(way: Way, where: str, rules: Path) -> None:
    kept = SPELLED.replace(',"secret":1', "")
    written = json.dumps(SPELLED)
    said = f'{{"content":[{{"type":"text","text":{written}}}]'
    said += f',"structuredContent":{SPELLED}}}' if where == "structured" else "}"
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "raw", says=said).decode()
    assert f'"text":{json.dumps(kept)}' in raw
    assert (f'"structuredContent":{kept}' in raw) == (where == "structured")
    assert "secret" not in raw


def test_no_copy_is_left_as_it_was(way: Way, rules: Path) -> None:
    document = {"a": 1, "secret": "s"}
    said = {"content": [{"type": "text", "text": json.dumps(document)}]}
    with way("--rules", str(rules), server=SERVER) as client:
        for more in ({}, {"structuredContent": document}):
            found = result(answer(client, "raw", says=json.dumps({**said, **more})))
            assert json.loads(found["content"][0]["text"]) == {"a": 1}
            assert found.get("structuredContent") == ({"a": 1} if more else None)


def test_each_of_several_texts_is_read(way: Way, rules: Path) -> None:
    rules.write_text(BOUNDED)
    texts = [f"{word} " * 1200 for word in ("first", "second", "third")]
    said = json.dumps({"content": [{"type": "text", "text": text} for text in texts]})
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "raw", says=said)
        assert len(raw) < 2 * BUDGET
        for word in ("first", "second", "third"):
            assert f"{word} {word}".encode() in raw
        for number, text in enumerate(texts):
            seen = result(answer(client, "raw", says=said, view=f"[{number}][0:1000]"))
            assert seen["content"][0]["text"] == text[:1000]
