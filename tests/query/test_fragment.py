"""A view in the URI of a resource comes out as it was written."""

from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.query.fragment import end_for, split

URIS = st.from_regex(r"[a-z]{1,4}:[a-z/%2?&=.]{0,9}(#[a-z&=]{0,5})?", fullmatch=True)


@given(URIS.filter(lambda uri: split(uri)[1] is None), st.text(st.characters(codec="utf-8")))
def test_a_view_and_its_resource_come_out_of_a_uri_as_they_went_in(uri: str, view: str) -> None:
    combined = uri + end_for(uri, view)
    assert split(combined) == (uri, view)
    assert combined.isascii()
    assert not set('[]{}<>"|\\^` ') & set(combined)
    assert combined.count("#") == 1
