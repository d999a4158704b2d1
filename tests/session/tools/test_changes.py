"""Whether what a client was told of the tools would be told in other words now."""

from msgspec import Raw

from proxy.errors import DocumentError
from proxy.session.tools import changes as listing
from proxy.session.tools.changes import ToolListHistory

ONE, TWO, OTHER = Raw(b'{"tools":[1]}'), Raw(b'{"tools":[2]}'), Raw(b'{"tools":[3]}')


def test_nothing_told_is_nothing_to_change() -> None:
    assert not ToolListHistory().differs(lambda _: OTHER)


def test_what_would_be_told_again_does_not_differ() -> None:
    made = ToolListHistory()
    made.told(ONE, OTHER, further=False)
    made.told(TWO, None, further=True)
    assert not made.differs(lambda raw: OTHER if raw == ONE else None)
    assert made.differs(lambda raw: OTHER)
    assert made.differs(lambda raw: None)


def test_a_new_first_page_is_a_new_list() -> None:
    made = ToolListHistory()
    made.told(ONE, OTHER, further=False)
    made.told(TWO, None, further=False)
    assert not made.differs(lambda _: None)


def test_what_can_be_read_no_more_is_told_as_it_came() -> None:
    def unreadable(_: Raw) -> Raw | None:
        raise DocumentError("on purpose")

    made = ToolListHistory()
    made.told(ONE, None, further=False)
    assert not made.differs(unreadable)


def test_a_page_that_is_too_long_to_be_kept_counts_as_changed() -> None:
    made = ToolListHistory()
    made.told(Raw(b'"' + b"x" * (5 << 20) + b'"'), None, further=False)
    assert made.differs(lambda _: None)


def test_a_list_without_end_is_not_kept_without_end() -> None:
    made = ToolListHistory()
    made.told(ONE, None, further=False)
    for number in range(5000):
        made.told(Raw(b'{"tools":["page %d"]}' % number), None, further=True)
    assert len(vars(made)["_pages"]) <= 1000
    assert made.differs(lambda _: None), "what is not kept counts as changed"
    long = ToolListHistory()
    for number in range(100):
        long.told(Raw(b'"%d%s"' % (number, b"x" * 100_000)), None, further=number > 0)
    assert sum(len(page.result) for page, _ in vars(long)["_pages"] if page) <= 4 << 20


def test_a_page_that_is_asked_for_over_and_over_is_kept_once() -> None:
    made = ToolListHistory()
    made.told(ONE, None, further=False)
    for _ in range(5000):
        made.told(TWO, None, further=True)
    assert len(vars(made)["_pages"]) == 2
    assert not made.differs(lambda _: None)


def test_lists_that_are_the_same_are_kept_once_and_not_for_ever() -> None:
    many = [ToolListHistory() for _ in range(10)]
    before = len(listing._PAGES)
    for each in many:
        each.told(Raw(b'{"tools":["of many"]}'), None, further=False)
    assert len(listing._PAGES) == before + 1
    del each
    many.clear()
    assert len(listing._PAGES) == before
