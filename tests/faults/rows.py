"""The table of faults: what can go wrong, and by which ways it is shown what is then seen.

A test shows a row by `@pytest.mark.fault(row, way)`. The ways: `stdio` is the wrapper as a real
process, before a command or a URL; `http` is the sidecar as a real process; `inside` is the engine
in the process of the test.
"""

from typing import Literal, get_args

import msgspec

Way = Literal["stdio", "http", "inside"]
WAYS: tuple[Way, ...] = get_args(Way)


class Row(msgspec.Struct, frozen=True):
    """A fault, and the ways by which it must be shown; others may be added to them."""

    title: str
    ways: tuple[Way, ...]


def _row(title: str, *ways: Way) -> Row:
    return Row(title, ways)


ROWS: dict[int, Row] = {
    1: _row("the server dies in an answer, before it, by a signal, with 0", "stdio", "http"),
    2: _row("a command that cannot be started, or crashes at its start", "stdio", "http"),
    3: _row("the last answer has no newline", "stdio", "http"),
    4: _row("noise, blank lines, CRLF and a byte order mark on stdout", "stdio", "http"),
    5: _row("noise glued in front of a message", "stdio", "http"),
    6: _row("UTF-8 cut at any byte; other line ends inside a text", "stdio", "http"),
    7: _row("bytes that JSON readers disagree on, untouched and under a rule", "stdio", "http"),
    8: _row("lines of 1, 20 and 100 MB", "stdio", "http"),
    9: _row("an endless line", "stdio", "http"),
    10: _row("answers with a wrong id, a second answer, requests by our ids", "stdio", "http"),
    11: _row("answers of a wrong shape", "stdio", "http"),
    12: _row("errors with codes, and what this protocol does not know", "stdio", "http"),
    13: _row("batches, both ways", "stdio", "http"),
    14: _row("no answer ever, and an answer after a cancel", "stdio", "http"),
    15: _row("a flood on stderr", "stdio", "http"),
    16: _row("a server or a client that stops reading, or both", "stdio", "http"),
    17: _row("20,000 notifications before an answer", "stdio", "http"),
    18: _row("the input ends with calls in flight", "stdio"),
    19: _row("SIGTERM, SIGINT and SIGHUP to the proxy", "stdio", "http"),
    20: _row("SIGKILL to the proxy, grandchildren, deaf children", "stdio", "http"),
    21: _row("a client's garbage, colliding ids, calls with two readings", "stdio"),
    22: _row("a bomb of gzip", "stdio", "http"),
    23: _row("a stream or a body that is cut, a connection that is reset", "stdio", "http"),
    24: _row("event streams in every form and of every size", "stdio", "http"),
    25: _row("502 with HTML, an empty 200, wrong types, 401, 404, 429", "stdio", "http"),
    26: _row("a redirection to another origin", "stdio", "http"),
    27: _row("an evil or null Origin, an evil Host", "http"),
    28: _row("bodies too large, too deep or cut; smuggled requests", "http"),
    29: _row("10,000 abandoned sessions, half-open connections", "http"),
    30: _row("the client goes away in the middle of a call", "http"),
    31: _row("headers that repeat a body which a rule changes", "stdio", "http"),
    32: _row("a port that others reach, without a token", "http"),
    33: _row("credentials of the client", "stdio", "http"),
    34: _row("a rule that raises, at any step", "inside", "stdio", "http"),
    35: _row("a rule that makes a result larger, or empties it", "inside", "stdio"),
    36: _row("expressions that explode, in rules and in `view`", "inside", "stdio", "http"),
    37: _row("regular expressions that explode", "inside", "stdio"),
    38: _row("documents of another shape than a rule expects", "inside", "stdio"),
    39: _row("windows that cannot be, or lie past the end", "inside", "stdio", "http"),
    40: _row("cuts inside of a character", "inside", "stdio"),
    41: _row("a page or view with nothing kept behind it", "inside", "stdio", "http"),
    42: _row("rule files that are bombs, too deep, too large or wrong", "inside", "stdio"),
    43: _row("bad rules when files are read again", "inside", "stdio", "http"),
    44: _row("a ledger on a full, locked, shared or read-only disk; a full recording", "stdio"),
    45: _row("who can read what lies on disk, and how much that is", "stdio"),
    46: _row("100,000 names of tools", "http"),
    47: _row("clocks that jump; no descriptors or no memory left", "stdio", "http"),
    48: _row("what other proxies do to answers", "stdio", "http"),
    49: _row("rules read again that change nothing a client sees", "stdio", "http"),
    50: _row("an input schema that grows over 16,384 bytes", "stdio"),
}
