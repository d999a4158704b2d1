"""Checks of the keyword `format`: RFC 3339 dates and times, IP addresses and UUIDs.

Every other format is an annotation and is not checked.
"""

import re
from collections.abc import Callable


def date(text: str) -> bool:
    """Return True if `text` is a full-date of RFC 3339."""
    from datetime import date as day

    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is None:
        return False
    try:
        day.fromisoformat(text)
    except ValueError:
        return False
    return True


def time(text: str) -> bool:
    """Return True if `text` is a full-time of RFC 3339, its offset from UTC included."""
    clock = r"(\d\d):(\d\d):(\d\d)(\.\d+)?([zZ]|[+-](\d\d):(\d\d))"
    found = re.fullmatch(clock, text, re.ASCII)
    if found is None:
        return False
    hour, minute, second, away, more = (int(found[at] or 0) for at in (1, 2, 3, 6, 7))
    # RFC 3339 section 5.7: 60 is a leap second.
    return hour < 24 and minute < 60 and second <= 60 and away < 24 and more < 60


def date_time(text: str) -> bool:
    """Return True if `text` is a date-time of RFC 3339.

    >>> date_time("2026-01-31T09:00:00Z"), date_time("2026-01-31T09:00:00")
    (True, False)
    """
    return text[10:11] in ("T", "t") and date(text[:10]) and time(text[11:])


def uuid(text: str) -> bool:
    """Return True if `text` is a UUID in the notation of RFC 9562, in upper or lower case."""
    written = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    return re.fullmatch(written, text) is not None


def _address(text: str, version: int) -> bool:
    import ipaddress

    try:
        # A zone (`fe80::1%eth0`) is not part of the address.
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": date,
    "date-time": date_time,
    "ipv4": lambda text: _address(text, 4),
    "ipv6": lambda text: _address(text, 6),
    "time": time,
    "uuid": uuid,
}
"""The formats that are checked, by their names in JSON Schema."""
