"""Every Accept header is given a form of answer, by RFC 9110, and none is an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.transports.http.negotiation import Wanted, negotiate

CASES: dict[Wanted, list[str | None]] = {
    "json": [
        "Application/JSON; charset=utf-8",
        "application/json, text/event-stream;q=0.000",
        "*/*, text/event-stream;q=0",
        "application/*",
    ],
    "stream": [
        "TEXT/Event-Stream; charset=utf-8",
        "text/*",
        "application/json;q=0.9, text/event-stream",
        "*/*;q=0.1, text/event-stream",
        "application/json;q=0, */*",
        "application/*;q=0.2, text/*;q=0.3",
    ],
    "prefer json": [
        *(None, "", "   ", "*/*", "*", "* ; q=0.5", "text/html, */*;q=0.1"),
        "application/json, */*",
        "text/event-stream;q=0.5,application/json",
        *(";;;", ",,,;q=1", "json", "/", "/json", "application/", "a/b/c", '"', "q=0.5", "\x00"),
        "application/json text/event-stream",
        '"application/json"',
    ],
    "either": [
        "text/event-stream,application/json",
        "*/*, text/event-stream",
        "application/json, text/event-stream, */*;q=0.1, ;;;",
        "application/json;q=7, text/event-stream;q=1",
        "application/json;q=0.5, application/json, text/event-stream",
    ],
    "nothing": [
        "image/png, text/html;q=0.8, ;;;",
        "application/jsonp",
        "*/*;q=0",
        "application/json;q=0, text/event-stream;q=0, */*;q=0",
    ],
}


@pytest.mark.parametrize(
    ("accept", "form"), [(accept, form) for form, headers in CASES.items() for accept in headers]
)
def test_an_accept_header_asks_for_a_form(accept: str | None, form: Wanted) -> None:
    assert negotiate(accept) == form


@given(st.text() | st.text('"\\,;/*q=0.1 application/json text/event-stream'))
def test_no_accept_header_is_an_error(accept: str) -> None:
    assert negotiate(accept) in CASES


@pytest.mark.parametrize("piece", ['"', '"\\', ";q=0.", ",", " ", "a/b;", "*/*,", "; q =", "1"])
def test_a_long_header_is_read_like_a_short_one(piece: str) -> None:
    assert negotiate("a/b;q=" + piece * 30_000 + ',"", text/event-stream') in CASES
