"""How many elements the server has of an array of which one page came.

Without it, a count of the rows that came reads as one of all: `{"total": 317, "items": [90 rows]}`.
"""

import re
from collections.abc import Mapping

from msgspec import Raw

from mcp_abridge.document.tree import level

_TOTALS = (
    *("totalcount", "totalresults", "totalhits", "totalrecords", "totalrows", "totalsize"),
    *("numfound", "rowcount", "resultsizeestimate"),
)
_OF_PAGES = ("total", "totalitems", "totalelements")
"""Names of totals if a member of a page stands beside them: alone, a total may be one of money."""
_COUNTS = (*_TOTALS, *_OF_PAGES)
_PAGES = frozenset(
    (
        *("next", "nextcursor", "nextpage", "nextpagetoken", "nexttoken", "hasmore", "hasnext"),
        *("offset", "skip", "startat", "cursor", "pages", "totalpages", "pagecount", "lastpage"),
        *("pagesize", "perpage", "maxresults", "maxscore", "relation"),
        *("pagination", "paging", "pageinfo"),
    )
)
_FLAGS = frozenset(
    (
        *("hasmore", "hasnext", "hasnextpage", "truncated", "istruncated", "incomplete"),
        "incompleteresults",
    )
)
"""Names of members that are true of a part."""
_CURSORS = frozenset(
    (
        *("nextcursor", "nextpage", "nextpagetoken", "nexttoken", "nextrange", "nextlink"),
        *("nextmarker", "nextcontinuationtoken", "nexturl", "continuationtoken", "pagetoken"),
    )
)
"""Names of members that have a value in a part."""
_SAYS_SO = re.compile(
    r"(?i)\b(?:truncated|start_index|next_cursor)\b|\bmore (?:results|items|lines|rows|content)\b"
)
_END = 300  # characters of a text, in which a server says that it has more
_NO_ROWS = re.compile("(?i)error|warning|message|included|links")
"""Names of arrays that stand beside the rows of a page, which may be none."""
_BESIDE = ("meta", "pagination", "paging", "page", "pageinfo")  # objects with such members
_LINKS = (*_BESIDE, "links", "metadata", "responsemetadata")
_NEXT = ("next", "after", "continue")  # cursors in such an object, and links anywhere
_PLACE = re.compile(rb'"(?=[^"]*[A-Za-z])')  # an offset that is no number
_NOTHING = (b"null", b'""', b"false", b"0", b"[]", b"{}")
_LINK = re.compile(rb'\s*(?:\{|"(?:https?:)?[/?])')
_DIGITS = 20  # of a number that counts nothing

Names = tuple[str, ...]
Total = tuple[int, str]
"""A number, and how it is said: `10000+` if there may be more."""


def server_total(members: Mapping[str, Raw]) -> dict[str, Total]:
    """Return the one array of an object with the number of elements that the server has, if told.

    >>> page = {"total": Raw(b"317"), "items": Raw(b'["a"]')}
    >>> server_total(page), server_total({**page, "nextCursor": Raw(b"null")})
    ({}, {'items': (317, '317')})
    >>> server_total({**page, "offset": Raw(b"400"), "items": Raw(b"[]"), "facets": Raw(b"[1]")})
    {}
    >>> server_total({"total": Raw(b'{"value": 10000, "relation": "gte"}'), "hits": page["items"]})
    {'hits': (10000, '10000+')}
    """
    arrays = [name for name, raw in members.items() if memoryview(raw)[0] == 0x5B]
    arrays = [name for name in arrays if not _NO_ROWS.search(name)]
    if len(arrays) != 1:
        return {}
    plain = _plain(members)
    inner = {name: level(plain[name]) for name in (*_BESIDE, "total") if _is_object(plain, name)}
    parts = inner.pop("total", {})
    for each in inner.values():
        plain = {**_plain(each), **plain}
    in_pages = not _PAGES.isdisjoint({*plain, *parts})
    name = next((each for each in (*_TOTALS, *_OF_PAGES * in_pages) if each in plain), "")
    digits = bytes(parts.get("value", b"") if parts else plain.get(name, b""))
    digits = digits.strip(b'"') if name in _TOTALS else digits
    more = "+" * (bytes(parts.get("relation", b"")) == b'"gte"')
    is_count = digits.isdigit() and len(digits) < _DIGITS
    return {arrays[0]: (int(digits), f"{digits.decode()}{more}")} if is_count else {}


def sign_of_more(members: Mapping[str, Raw]) -> Names:
    """Return the path of the member by which a server says that it has more than it sent, or ().

    >>> sign_of_more({"rows": Raw(b"[1]"), "meta": Raw(b'{"next_cursor": "a"}')})
    ('meta', 'next_cursor')
    >>> sign_of_more({"has_more": Raw(b"false"), "nextCursor": Raw(b"null"), "next": Raw(b'""')})
    ()
    >>> sign_of_more({"total_count": Raw(b"412"), "items": Raw(b"[1, 2]")})
    ('total_count',)
    """
    every: dict[Names, Raw] = {(name,): raw for name, raw in members.items()}
    for name in members:
        if _spelled(name) in _LINKS and _is_object(members, name):
            every |= _inside((name,), members[name])
    for path, raw in every.items():
        value, word = bytes(raw), _spelled(path[-1])
        if word in _FLAGS and value == b"true":
            return path
        link = word in _NEXT and (len(path) > 1 or _LINK.match(value) is not None)
        place = word == "offset" and _PLACE.match(value) is not None
        if (word in _CURSORS or link or place) and value not in _NOTHING:
            return path
    for array, (count, _) in server_total(members).items():
        if count > len(level(members[array])):
            return next((path for path in every if _spelled(path[-1]) in _COUNTS), ())
    return ()


def _inside(path: Names, value: Raw) -> dict[Names, Raw]:
    """Return the members of an object about pages, and of such an object in it, by their paths."""
    members: dict[str, Raw] = level(value)
    paths = {(*path, name): raw for name, raw in members.items()}
    for name in members:
        if _spelled(name) in _LINKS and _is_object(members, name):
            paths |= _inside((*path, name), members[name])
    return paths


def says_more(text: str) -> bool:
    """Return True if the end of a text says that the server has more."""
    return _SAYS_SO.search(text[-_END:]) is not None


def more_than(count: int, total: Total | None) -> str:
    """Return how a total is said, if that is more than the `count` that came; else nothing."""
    return total[1] if total is not None and total[0] > count else ""


def _is_object(members: Mapping[str, Raw], name: str) -> bool:
    return name in members and memoryview(members[name])[0] == 0x7B


def _plain(members: Mapping[str, Raw]) -> dict[str, Raw]:
    """Return members by their names in one spelling: `total_count`, `totalCount`."""
    return {_spelled(name): raw for name, raw in members.items()}


def _spelled(name: str) -> str:
    return name.rpartition(".")[2].replace("_", "").replace("-", "").lower()
