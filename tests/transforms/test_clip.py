import json

import pytest

from proxy.document.paths import Path
from proxy.transforms.clip import Clip
from proxy.transforms.parse import Parse
from tests.documents import call, said, shaped

BODY = Path.parse("body")


@pytest.mark.parametrize(
    ("step", "text", "clipped"),
    [
        (Clip(max_chars=4), "abcdefghij", "abcd… (+6 chars)"),
        (Clip(max_chars=4), "abcd", "abcd"),
        (Clip(max_chars=0), "ab", "… (+2 chars)"),
        (Clip(max_chars=1), "😀é", "😀… (+1 chars)"),
        (Clip(max_lines=2), "a\nb\nc\nd", "a\nb\n… (+2 lines)"),
        (Clip(max_lines=2), "a\nb\nc\nd\n", "a\nb\n… (+2 lines)"),
        (Clip(max_lines=2), "a\nb\n", "a\nb\n"),
        (Clip(max_lines=2), "a\nb", "a\nb"),
        (Clip(max_lines=0), "a\nb", "… (+2 lines)"),
        (Clip(max_lines=1, max_chars=2), "abc\nd", "ab… (+3 chars)"),
        (Clip(max_lines=1, max_chars=9), "abc\nd\ne", "abc\n… (+2 lines)"),
    ],
)
def test_a_text_is_shortened_and_what_is_left_out_is_counted(
    step: Clip, text: str, clipped: str
) -> None:
    assert said(text, step) == clipped


def test_each_string_at_the_path_is_clipped_and_nothing_else() -> None:
    raw = b'[{"body":"abcdef","id":1.0},{"body":null},{"body":"\\/"},{"body":["uvwxyz",7]}]'
    assert json.loads(shaped(raw, Clip(at=BODY, max_chars=3))) == [
        {"body": "abc… (+3 chars)", "id": 1.0},
        {"body": None},
        {"body": "/"},
        {"body": ["uvw… (+3 chars)", 7]},
    ]
    assert b'{"body":"\\/"}' in shaped(raw, Clip(at=BODY, max_chars=3))


def test_records_are_clipped_each_and_keep_the_lines_between_them() -> None:
    text = "== 1\na\nb\n\n== 2\nc\n\n== 3\nd\ne\nf"
    parse = Parse(as_="records", split="(?m)^(?=== )")
    assert said(text, parse, Clip(max_lines=2)) == (
        "== 1\na\n… (+1 lines)\n\n== 2\nc\n\n== 3\nd\n… (+2 lines)"
    )


def test_a_path_that_matches_nothing_is_reported() -> None:
    told = call()
    shaped(b'{"a": 1}', Clip(at=BODY, max_chars=3), at=told)
    assert told.missing == ["body"]
