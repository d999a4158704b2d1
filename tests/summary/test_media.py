import json
import random
import struct
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.tree import Document
from mcp_abridge.query.call import Call
from mcp_abridge.query.view import look
from mcp_abridge.summary.media import description
from mcp_abridge.transforms.abridge import abridge

from tests.omissions import LeftOut, below, check_notes, left_out

NOISE = random.Random(1).randbytes(900)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 120, 80) + NOISE
JPEG = (
    b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(10) + b"\xff\xc0\0\x11\x08" + struct.pack(">HH", 80, 120)
)


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def cut(value: Any, bound: int, viewed: str = "", **options: Any) -> tuple[Any, list[Any]]:
    call = Call("t", viewable=True, notices=[], **options)
    document = Document.read(json.dumps(value).encode())
    abridge(document, bound, call, viewed)
    return json.loads(document.encode()), [notice.value for notice in call.notices]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "PNG image, 120 x 80 pixels, "),
        (JPEG + NOISE, "JPEG image, 120 x 80 pixels, "),
        (b"GIF89a" + struct.pack("<HH", 120, 80) + NOISE, "GIF image, 120 x 80 pixels, "),
        (b"RIFF\0\0\0\0WEBPVP8 " + NOISE, "WebP image, "),
        (b"%PDF-1.7\n" + NOISE, "PDF, "),
        (b"\x1f\x8b\x08" + NOISE, "gzip, "),
        (b"\x89PNG\r\n\x1a\n" + bytes(600), "PNG image, "),
        (NOISE, ""),
    ],
)
def test_a_note_says_what_the_data_is_and_how_much(data: bytes, kind: str) -> None:
    note = f"[{kind}{len(data):,} bytes of base64 data left out]"
    assert description(base64(data)) == note
    assert description(urlsafe_b64encode(data).decode().rstrip("=")) == note
    wrapped = "\r\n".join(base64(data)[at : at + 76] for at in range(0, len(base64(data)), 76))
    assert description(wrapped) == note


def test_the_note_on_a_data_uri_names_its_type() -> None:
    uri = "data:image/svg+xml;charset=utf-8;base64," + base64(b"<svg>" * 200)
    assert description(uri) == "[image/svg+xml, 1,000 bytes of base64 data left out]"
    uri = "data:image/svg+xml," + "%3Csvg%3E" * 100
    assert description(uri) == f"[image/svg+xml, {len(uri)} characters left out]"


@pytest.mark.parametrize(
    "text",
    [
        base64(NOISE[:300]),
        "x" * 9000,
        "0123456789abcdef" * 100,
        "ACGT" * 1000,
        "One/two+Three4" * 100,
        base64(NOISE) + " and a word",
        "data: the rest is prose, " + "a word " * 100,
        base64(NOISE)[:-3],
    ],
)
def test_other_texts_are_no_data(text: str) -> None:
    assert description(text) is None


def test_data_becomes_a_note_wherever_it_stands_and_all_else_stays() -> None:
    rows = [{"n": n, "thumb": base64(PNG)} for n in range(3)]
    value = {"a": 1.5, "rows": rows, "deep": {"er": [base64(NOISE)]}, "text": "word " * 80}
    document, notices = cut(value, 2000)
    notes = document.pop("_abridged")
    assert notices == []
    assert document["rows"][1] == {"n": 1, "thumb": description(base64(PNG))}
    assert document["deep"] == {"er": [description(base64(NOISE))]}
    assert (document["a"], document["text"]) == (1.5, value["text"])
    total = 3 * len(base64(PNG))
    assert notes == {
        "rows.thumb": f"0 of {total} chars in 3 texts",
        "deep.er[]": f"0 of {len(base64(NOISE))} chars",
    }


def test_a_document_that_fits_keeps_its_data() -> None:
    value = {"data": base64(PNG)}
    assert cut(value, 5000) == (value, [])


def test_a_text_that_is_data_becomes_a_note() -> None:
    text = base64(PNG)
    assert cut(text, 1000) == (description(text), [{"text": f"0 of {len(text)} chars"}])


def test_a_block_may_be_data() -> None:
    _, [notes] = cut(["prose", base64(PNG)], 1000, blocks=True)
    assert notes == {"[1]": f"0 of {len(base64(PNG))} chars"}


def test_a_member_that_a_later_call_passes_back_stays() -> None:
    value = {"nextPageToken": base64(NOISE[:450]), "text": "word " * 600}
    document, _ = cut(value, 3000)
    assert document["nextPageToken"] == value["nextPageToken"]


def test_a_view_of_data_shows_it() -> None:
    whole = {"a": {"data": base64(PNG)}, "b": 1}
    for view in ("a.data", "a.data[0:3000]"):
        value = look(Document(whole), view)
        for answer in (value, {"view": value}):
            document, _ = cut(answer, 1000, view)
            data = document if isinstance(document, str) else document["view"].removesuffix("…")
            assert len(data) > 500
            assert base64(PNG).startswith(data)
    document, _ = cut({"view": whole["a"]}, 1000, "a")
    assert document["view"]["data"] == description(base64(PNG))


LEAVES = st.sampled_from([base64(PNG), base64(NOISE), "x" * 700, "a word", 1, None])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abcd"), inner)
)


def replaced(value: Any, path: str, amounts: LeftOut) -> Any:
    """Return a value with notes in place of data, and count the data."""
    if isinstance(value, dict):
        return {name: replaced(value[name], below(path, name), amounts) for name in value}
    if isinstance(value, list):
        return [replaced(each, f"{path}[]", amounts) for each in value]
    note = description(value) if isinstance(value, str) else None
    if note is not None:
        amounts.count(path, " chars", 0, len(value))
    return value if note is None else note


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.integers(300, 5000))
def test_the_notes_count_all_that_is_left_out(value: Any, bound: int) -> None:
    document, notices = cut(value, bound, breadth=False)
    if isinstance(document, dict) and "_abridged" in document:
        notices = [document.pop("_abridged")]
    for notes in notices:
        path = "items" if isinstance(value, list) else ""
        data = LeftOut()
        amounts = left_out(replaced(value, path, data), document, path)
        amounts.counts += data.counts
        check_notes(amounts, notes)
