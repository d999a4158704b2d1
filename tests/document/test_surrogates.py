import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.surrogates import replace_lone

LONE = [r"\ud800", r"\uDFFF", r"\uD8ab"]
WHOLE = [r"\ud83d\ude00", r"\uD83D\uDE00", r"\\", r"\n", r"x", r"\\ud800", r"\ud7ff"]


@given(st.lists(st.sampled_from(LONE + WHOLE)).map("".join))
def test_lone_surrogates_and_no_others_become_the_replacement_character(inner: str) -> None:
    raw = f'"{inner}"'
    characters = json.loads(raw)

    assert json.loads(replace_lone(raw.encode())) == "".join(
        "\ufffd" if "\ud800" <= each <= "\udfff" else each for each in characters
    )


@given(st.lists(st.sampled_from(WHOLE)).map("".join))
def test_a_text_without_a_lone_surrogate_stays_the_same_object(inner: str) -> None:
    raw = f'"{inner}"'.encode()
    assert replace_lone(raw) is raw


@pytest.mark.parametrize(
    "unit", [b"\\", b"\\u", b"\\ud8", rb"\ud83d", rb"\ude00", rb"\ud83d\ude00"]
)
def test_the_time_is_linear_whatever_the_bytes(unit: bytes) -> None:
    replace_lone(unit * 200_000 + rb"\ud800")
