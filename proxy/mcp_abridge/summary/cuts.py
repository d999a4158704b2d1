"""The places at which a long text is cut, the marks of it, and the calls for the rest.

Without them a part would read as the whole.
"""

from mcp_abridge.document.measure import chars_that_fit, ending
from mcp_abridge.query.call import Call

MARK = "…"  # stands for the characters left out
NOTE_END = " left out]"  # the end of a note that stands for a whole string, and is never cut
WINDOW = 150  # bytes of a view that are left for its notice


def both_ends(text: str, room: int) -> tuple[int, int]:
    """Return where the beginning ends and the end begins, at lines if possible, in `room` bytes."""
    head = ending(text, chars_that_fit(text, room * 3 // 5))
    last = max(len(text) - room * 2 // 5, head)
    tail = len(text) - chars_that_fit(text[last:][::-1], room * 2 // 5)
    line = text.find("\n", tail, (tail + len(text)) // 2)
    return head, tail if line < 0 else line


def calls_for_more(call: Call, view: str) -> list[str]:
    """Return the calls that notices name: `view` for what is next, all if it fits, a search."""
    search = call.question("grep('word')")
    whole = [call.all_question] if call.all_question else []
    return [call.next_question(view), *whole, f"{search} searches"]
