"""The table of faults: what can go wrong, and by which ways it is shown what is then seen.

A test shows a row by `@pytest.mark.fault(row, way)`. The ways: `stdio` is the wrapper as a real
process, before a command or a URL; `http` is the sidecar as a real process; `inside` is the engine
in the process of the test.
"""

from typing import Literal, get_args

Way = Literal["stdio", "http", "inside"]
WAYS: tuple[Way, ...] = get_args(Way)


class Row:
    """A fault, and the ways by which it must be shown; others may be added to them."""

    def __init__(self, title: str, *ways: Way) -> None:
        self.title = title
        self.ways = ways


ROWS: dict[int, Row] = {
    1: Row("the server dies in an answer, before it, by a signal, with 0", "stdio", "http"),
    2: Row("a command that cannot be started, or crashes at its start", "stdio", "http"),
    3: Row("the last answer has no newline", "stdio", "http"),
    4: Row("noise, blank lines, CRLF and a byte order mark on stdout", "stdio", "http"),
    5: Row("noise glued in front of a message", "stdio", "http"),
    6: Row("UTF-8 cut at any byte; other line ends inside a text", "stdio", "http"),
    7: Row("bytes that JSON readers disagree on, untouched and under a rule", "stdio", "http"),
    8: Row("lines of 1, 20 and 100 MB", "stdio", "http"),
    9: Row("an endless line", "stdio", "http"),
    10: Row("answers with a wrong id, a second answer, requests by our ids", "stdio", "http"),
    11: Row("answers of a wrong shape", "stdio", "http"),
    12: Row("errors with codes, and what this protocol does not know", "stdio", "http"),
    13: Row("batches, both ways", "stdio", "http"),
    14: Row("no answer ever, and an answer after a cancel", "stdio", "http"),
    15: Row("a flood on stderr", "stdio", "http"),
    16: Row("a server or a client that stops reading, or both", "stdio", "http"),
    17: Row("20,000 notifications before an answer", "stdio", "http"),
    18: Row("the input ends with calls in flight", "stdio"),
    19: Row("SIGTERM, SIGINT and SIGHUP to the proxy", "stdio", "http"),
    20: Row("SIGKILL to the proxy, grandchildren, deaf children", "stdio", "http"),
    21: Row("a client's garbage, colliding ids, calls with two readings", "stdio"),
    22: Row("a bomb of gzip", "stdio", "http"),
    23: Row("a stream or a body that is cut, a connection that is reset", "stdio", "http"),
    24: Row("event streams in every form and of every size", "stdio", "http"),
    25: Row("502 with HTML, an empty 200, wrong types, 401, 404, 429", "stdio", "http"),
    26: Row("a redirection to another origin", "stdio", "http"),
    27: Row("an evil or null Origin, an evil Host", "http"),
    28: Row("bodies too large, too deep or cut; smuggled requests", "http"),
    29: Row("10,000 abandoned sessions, half-open connections", "http"),
    30: Row("the client goes away in the middle of a call", "http"),
    31: Row("headers that repeat a body which a rule changes", "stdio", "http"),
    32: Row("a port that others reach, without a token", "http"),
    33: Row("credentials of the client", "stdio", "http"),
    34: Row("a rule that raises, at any step", "inside", "stdio", "http"),
    35: Row("a rule that makes a result larger, or empties it", "inside", "stdio"),
    36: Row("expressions that explode, in rules and in `view`", "inside", "stdio", "http"),
    37: Row("regular expressions that explode", "inside", "stdio"),
    38: Row("documents of another shape than a rule expects", "inside", "stdio"),
    39: Row("windows that cannot be, or lie past the end", "inside", "stdio", "http"),
    40: Row("cuts inside of a character", "inside", "stdio"),
    41: Row("a page or view with nothing kept behind it", "inside", "stdio", "http"),
    42: Row("rule files that are bombs, too deep, too large or wrong", "inside", "stdio"),
    43: Row("bad rules when files are read again", "inside", "stdio", "http"),
    44: Row("a ledger on a full, locked, shared or read-only disk; a full recording", "stdio"),
    45: Row("who can read what lies on disk, and how much that is", "stdio"),
    46: Row("100,000 names of tools", "http"),
    47: Row("clocks that jump; no descriptors or no memory left", "stdio", "http"),
    48: Row("what other proxies do to answers", "stdio", "http"),
    49: Row("rules read again that change nothing a client sees", "stdio", "http"),
    50: Row("an input schema that grows over 16,384 bytes", "stdio"),
    51: Row("a current folder with modules that are called as ours", "stdio", "http"),
    52: Row("a run of wrap that is killed, or meets another", "stdio"),
    53: Row("another caller, whose session, process or answer this one could get", "http"),
}
