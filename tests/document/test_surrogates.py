import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.surrogates import mask, maskable, unmask
from proxy.errors import DocumentError

PIECES = ["\\ud800", "\\uDFFF", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\\\", "\\n", "x", "\\\\ud800"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_a_masked_text_decodes_strictly_and_comes_back_as_it_was(inner: str) -> None:
    raw = f'"{inner}"'.encode()
    masked = mask(raw)
    json.loads(masked).encode()
    assert unmask(masked) == raw


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_a_lone_surrogate_is_always_suspected(inner: str) -> None:
    raw = f'"{inner}"'.encode()
    if mask(raw) is not raw:
        assert maskable(raw, ValueError())


@pytest.mark.parametrize(
    "raw",
    [
        b'"plain"',
        rb'"\ud83d\ude00\ud83d\ude01"',
        rb'"\uD83D\uDE00"',
        rb'"\ud7ff\n"',
        "\U0001f600".encode(),
    ],
)
def test_texts_without_a_lone_surrogate_are_not_suspected(raw: bytes) -> None:
    assert not maskable(raw, ValueError())
    assert mask(raw) is raw


def test_two_lone_halves_in_the_wrong_order_are_both_masked() -> None:
    assert mask(rb'"\ude00\ud83d"') == '"\U0010f600\U0010f03d"'.encode()


@pytest.mark.parametrize("taken", ["\U0010f000".encode(), rb"\udbfc\udc00", rb"\\udbfc\\udc00"])
def test_what_masking_would_confuse_is_refused(taken: bytes) -> None:
    assert mask(b'"' + taken + b'"') == b'"' + taken + b'"'
    with pytest.raises(DocumentError, match="plane 16"):
        mask(rb'"\ud800' + taken + b'"')


def test_an_escape_that_mixes_cases_is_refused() -> None:
    with pytest.raises(DocumentError) as refused:
        mask(rb'"\uD8ab"')
    assert str(refused.value) == r"a lone surrogate spelled '\\uD8ab' cannot be carried"
