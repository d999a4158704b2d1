"""What a model is shown of answers that other proxies hide, spoil, cut or hang on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.asking import Client, Way, on_stdio, over_http
from tests.faults.sidecar import call

SERVER = ("--", sys.executable, str(Path(__file__).with_name("changing.py")))
STDIO = pytest.param(on_stdio, marks=pytest.mark.fault(48, "stdio"))
HTTP = pytest.param(over_http, marks=pytest.mark.fault(48, "http"))
EACH = pytest.mark.parametrize("way", [STDIO, HTTP])
BUDGET = 8000
BOUNDED = f"version: 1\nrules: [{{tools: '*', max_bytes: {BUDGET}}}]\n"
CUT = """\
version: 1
rules:
  - {tools: huge, response: [{keep: [rows.id, source]}, {paginate: {at: rows, limit: 3}}]}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(CUT)
    return file


def answer(client: Client, tool: str, **arguments: Any) -> bytes:
    return client.ask(call(2, tool, arguments=arguments))


def result(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw)["result"]
    return found


@EACH
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
