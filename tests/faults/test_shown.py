"""What a model is shown of answers that other proxies hide, spoil, cut or hang on."""

import json
import random
import struct
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.faults.asking import Client, Way, on_stdio, over_http
from tests.faults.scale import further
from tests.faults.sidecar import call
from tests.omissions import check_text

SERVER = ("--", sys.executable, str(Path(__file__).with_name("changing.py")))
STDIO = pytest.param(on_stdio, marks=pytest.mark.fault(48, "stdio"))
HTTP = pytest.param(over_http, marks=pytest.mark.fault(48, "http"))
EACH = pytest.mark.parametrize("way", [STDIO, HTTP])
# What a session makes of an answer is the same over HTTP.
EITHER = pytest.mark.parametrize(
    "way", [STDIO, further(over_http, marks=[pytest.mark.fault(48, "http")])]
)
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


@EITHER
@pytest.mark.parametrize("text", [CUT, BOUNDED], ids=["page", "budget"])
def test_20_mb_in_two_copies_are_made_short_in_both(way: Way, text: str, rules: Path) -> None:
    rules.write_text(text)
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "huge", rows=29_000)
        assert len(raw) < 3 * BUDGET
        found = result(raw)
        first = found["structuredContent"]
        assert json.loads(found["content"][0]["text"]) == first
        assert 0 < len(first["rows"]) < 300
        assert first["source"] == "here"
        # What follows is not held up by it.
        assert answer(client, "note", says="next").endswith(b'"text":"next"}]}}')


@EITHER
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


@EITHER
def test_a_log_shows_the_failure_at_its_end_and_the_lines_of_the_others(
    way: Way, rules: Path
) -> None:
    rules.write_text(BOUNDED)
    lines = [f"10:{n // 60:02}:{n % 60:02} step {n} done in {n % 7} ms" for n in range(2_500)]
    lines[1200] = "10:20:00 step 1200 FAILED, trying again"
    lines[-3:] = ["Traceback (most recent call last):", "KeyError: 'row'", "exit code 1"]
    log = "\n".join(lines)
    with way("--rules", str(rules), server=SERVER) as client:
        raw = answer(client, "note", says=log)
        shown, told = (block["text"] for block in result(raw)["content"])
        note = json.loads(told)["_abridged"]
        around = result(answer(client, "note", says=log, view="lines(1200, 1202)"))
    assert len(shown) + len(told) <= BUDGET
    assert shown.startswith(lines[0])
    assert shown.endswith("\n".join(lines[-3:]))
    check_text(log, shown, note)
    assert note["text"].endswith("; 1 line there with a failure: 1201")
    assert "view='lines(1191, 1211)' shows line 1201" in note["more"]
    assert around["content"][0]["text"] == "\n".join(lines[1199:1202]) + "\n"


@EITHER
def test_an_image_inside_a_document_becomes_a_note_and_all_else_stays(
    way: Way, rules: Path
) -> None:
    rules.write_text(BOUNDED)
    pixels = zlib.compress(random.Random(1).randbytes(28_800), 0)
    image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 120, 80) + pixels
    data = b64encode(image).decode()
    page = {"title": "a page", "shot": {"type": "png", "data": data}, "links": ["a/b"] * 99}
    said = json.dumps({"content": [{"type": "text", "text": json.dumps(page)}]})
    with way("--rules", str(rules), server=SERVER) as client:
        raw = result(answer(client, "raw", says=said))["content"]
        part = result(answer(client, "raw", says=said, view="shot.data[0:2000]"))["content"]
    found = json.loads(raw[0]["text"])
    note = f"[PNG image, 120 x 80 pixels, {len(image):,} bytes of base64 data left out]"
    assert found.pop("_abridged") == {"shot.data": f"0 of {len(data)} chars"}
    assert found == {**page, "shot": {"type": "png", "data": note}}
    assert part[0]["text"] == data[:2000]


SPELLED = (
    r'{"price":1.10,"huge":1e400,"long":12345678901234567890123,"zero":-0,"path":"\/a","secret":1}'
)


@EACH
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


@EITHER
def test_no_copy_is_left_as_it_was(way: Way, rules: Path) -> None:
    document = {"a": 1, "secret": "s"}
    said = {"content": [{"type": "text", "text": json.dumps(document)}]}
    with way("--rules", str(rules), server=SERVER) as client:
        for more in ({}, {"structuredContent": document}):
            found = result(answer(client, "raw", says=json.dumps({**said, **more})))
            assert json.loads(found["content"][0]["text"]) == {"a": 1}
            assert found.get("structuredContent") == ({"a": 1} if more else None)


@EITHER
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
