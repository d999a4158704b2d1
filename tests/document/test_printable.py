"""Text of others in a terminal and in sentences of the proxy's own."""

from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.printable import printable, quoted


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_a_terminal_interprets_is_left(text: str) -> None:
    text = printable(text)
    assert not any(each < " " and each != "\t" for each in text)
    assert not any(each in text for each in "\x7f\x9b\u202a\u202e\u2066\u2069\u200e\u2028\ud800")
    text.encode()


@given(st.text(st.characters(exclude_categories=())))
def test_a_quote_of_others_is_one_short_line(text: str) -> None:
    quote = quoted(text)
    assert len(quote.splitlines()) == 1
    assert len(quote) <= 2 + 40 * len(r"\U000e0041")
