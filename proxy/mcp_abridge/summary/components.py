r"""Events, tasks and contacts as rows: iCalendar and vCard (RFC 5545, RFC 6350).

Without it, no view of what a CalDAV server sends can tell which event is the next.
"""

import re

from mcp_abridge.summary.rows import Rows

SIGN = re.compile(r"\A\s*BEGIN:V(?:CALENDAR|CARD)\b", re.IGNORECASE)
"""The beginning of such a text."""

_KINDS = ("VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY", "VCARD")
_LINE = re.compile(r"(?:[\w-]+\.)?([A-Za-z][\w-]*)((?:;(?:\"[^\"]*\"|[^\":;])*)*):(.*)")
_FOLDED = re.compile(r"\r?\n[ \t]")


def components(text: str) -> Rows | None:
    r"""Return the events, tasks or contacts of a text; what has several values has them by line.

    Properties of what lies inside, such as an alarm, and their parameters are left out.

    >>> components("BEGIN:VCARD\nN:Lee;Ann\nTEL;TYPE=home:1\nTEL:2\nEND:VCARD\n").rows
    [{'N': 'Lee;Ann', 'TEL': '1\n2'}]
    """
    rows, inside = list[dict[str, str]](), list[str]()
    for line in _FOLDED.sub("", text).splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            if line.strip():
                return None
            continue
        name, _, value = match.groups()
        name = name.upper()
        if name == "BEGIN":
            inside.append(value.upper())
            rows += [{}] if inside[-1] in _KINDS else []
        elif name == "END":
            if not inside or inside.pop() != value.upper():
                return None
        elif inside and inside[-1] in _KINDS:
            rows[-1][name] = f"{rows[-1][name]}\n{value}" if name in rows[-1] else value
    form = "a calendar" if "VCALENDAR" in text.upper() else "contacts"
    return None if inside else Rows(rows, form, loses=True)
