import json
import sys
import time
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import (
    Document,
    compact,
    encode,
    have_room,
    loads,
)
from mcp_abridge.errors import DocumentError

from tests.documents import SCALARS, SURROGATES, open_all, values


def spelled(data: bytes) -> Any:
    """Decode JSON so that only equal spellings of numbers are equal, in order."""
    return json.loads(data, parse_float=str, parse_int=str, object_pairs_hook=list)


@given(values(SCALARS | st.sampled_from(SURROGATES)))
def test_unopened_values_keep_their_spelling_but_for_white_space(data: bytes) -> None:
    assert Document.read(data).encode() == compact(replace_lone(data))


@given(values(SCALARS | st.sampled_from(SURROGATES)))
def test_opening_everything_changes_no_value_no_number_and_no_order(data: bytes) -> None:
    document = Document.read(data)
    open_all(document.root)
    assert spelled(document.encode()) == spelled(replace_lone(data))
    assert not document.changed


NUMBERS = ["-0", "1.0", "1.10", "1e400", "-1E-7", "0", "18446744073709551616", "9" * 23]


@pytest.mark.parametrize("number", [*NUMBERS, "9" * 5000, "-" + "1" * 4300])
def test_a_number_decoded_in_full_keeps_its_spelling(number: str) -> None:
    for data in (number, f" {number} ", f"[{number},-0]", f'{{"a":{number}, "-0": 1.50}}'):
        assert encode(loads(data.encode())) == compact(data.encode())


@pytest.mark.parametrize("data", [b"NaN", b"[Infinity]", b"[-Infinity, -0]", b"[1", b'"\xff"', b""])
def test_no_json_is_refused_by_a_full_decode(data: bytes) -> None:
    with pytest.raises(DocumentError, match="not JSON: "):
        loads(data)


def test_circles_are_collected_though_large_documents_come_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Circle:
        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr("mcp_abridge.document.garbage._PAUSE", 0.05)
    large = b"[%s1]" % (b"1," * 200_000)
    circle = weakref.ref(Circle())
    end = time.monotonic() + 20
    while circle() is not None:
        assert time.monotonic() < end, "it is put off for ever"
        loads(large)


def test_memory_beyond_any_machine_is_an_error() -> None:
    with pytest.raises(MemoryError, match=r"^for a document of 9223372036854775807 bytes$"):
        have_room(sys.maxsize)


LONE = [r"\ud800", r"\uDFFF", r"\uD8ab"]
WHOLE = [r"\ud83d\ude00", r"\uD83D\uDE00", r"\\", r"\n", r"x", r"\\ud800", r"\ud7ff"]


@given(st.lists(st.sampled_from(LONE + WHOLE)).map("".join))
def test_lone_surrogates_and_no_others_become_the_replacement_character(inner: str) -> None:
    raw = f'"{inner}"'.encode()
    characters = json.loads(raw)
    whole = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in characters)

    assert json.loads(replace_lone(raw)) == whole
    assert (replace_lone(raw) is raw) == (whole == characters)


@pytest.mark.parametrize(
    "unit", [b"\\", b"\\u", b"\\ud8", rb"\ud83d", rb"\ude00", rb"\ud83d\ude00"]
)
def test_the_time_is_linear_for_any_bytes(unit: bytes) -> None:
    replace_lone(unit * 200_000 + rb"\ud800")
