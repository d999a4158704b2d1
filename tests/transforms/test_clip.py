import pytest

from proxy.transforms.clip import Clip
from tests.documents import said


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
