"""Whether what a client was told of the tools would be told in other words now."""

from msgspec import Raw

from proxy import listing
from proxy.errors import DocumentError
from proxy.listing import Listing

ONE, TWO, OTHER = Raw(b'{"tools":[1]}'), Raw(b'{"tools":[2]}'), Raw(b'{"tools":[3]}')


def test_nothing_told_is_nothing_to_change() -> None:
    assert not Listing().differs(lambda _: OTHER)


def test_what_would_be_told_again_does_not_differ() -> None:
    made = Listing()
    made.told(ONE, OTHER, further=False)
    made.told(TWO, None, further=True)
    assert not made.differs(lambda raw: OTHER if raw == ONE else None)
    assert made.differs(lambda raw: OTHER)
    assert made.differs(lambda raw: None)


def test_a_new_first_page_is_a_new_list() -> None:
    made = Listing()
    made.told(ONE, OTHER, further=False)
    made.told(TWO, None, further=False)
    assert not made.differs(lambda _: None)


def test_what_can_be_read_no_more_is_told_as_it_came() -> None:
    def unreadable(_: Raw) -> Raw | None:
        raise DocumentError("on purpose")

    made = Listing()
    made.told(ONE, None, further=False)
    assert not made.differs(unreadable)


def test_a_page_that_is_too_long_to_be_kept_counts_as_changed() -> None:
    made = Listing()
    made.told(Raw(b'"' + b"x" * (5 << 20) + b'"'), None, further=False)
    assert made.differs(lambda _: None)


def test_lists_that_are_the_same_are_kept_once_and_not_for_ever() -> None:
    many = [Listing() for _ in range(10)]
    before = len(listing._PAGES)
    for each in many:
        each.told(Raw(b'{"tools":["of many"]}'), None, further=False)
    assert len(listing._PAGES) == before + 1
    del each
    many.clear()
    assert len(listing._PAGES) == before
