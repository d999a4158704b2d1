"""Measures the dearest views over 10 MB: the seconds of a processor that each takes, all told.

`python -m tests.benchmarks.views` prints them, the greatest first. What other calls wait for
meanwhile is in tests/transports/stdio/test_views.py.
"""

import json
import random
import sys
import time
from collections.abc import Iterator

from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.storage.snapshots import Snapshot

from tests.builders import rule, tool_result
from tests.jobs import snapshot_of

RULE = "response: []\nmax_bytes: 8000"
SIZE = 10_000_000

_TEXT = (
    "grep('x(.*){1000}')",
    f"grep('(?i){'a?' * 60}b{{20}}X')",
    "grep('(a|b)*a(a|b){18}X')",
    "grep('(.*a){30}X')",
    "grep('[ab]+c{1,100}[ab]{1,100}X')",
    "grep('a')",
    "grep('.')",
    "grep('(?s).*X')",
    "grep('(?i)A', `50`)",
    "grep('[a-z]{1,1000}X')",
    "text | grep('a(.*){500}Q')",
    "outline()",
    "lines(1, 2000000)",
    "contains(text, 'zzzzz')",
    "[text, text, text, text]",
    "join(text, [text, text])",
    "to_string(text)",
    "text[::-1]",
    "matches(text, '(a|b)*a(a|b){18}X')",
    "[matches(text, 'a(.*){50}Y'), matches(text, 'b(.*){51}Y')]",
)
_ROWS = (
    "[*].[id, name, n, tags, by.login, body]",
    "sort_by(@, &body)",
    "group_by(@, &name)",
    "count_by(@, &body)",
    "sum_by(@, &name, &n)",
    "unique(@)",
    "max_by(@, &n)",
    "[?n > `0.5` && contains(body, 'word word') && matches(name, '(.*){100}7$')]",
    "[?matches(body, '(w|o)*r(.*){90}Z')]",
    "[?contains(body, name)]",
    "[].tags[]",
    "[*].{a: @, b: @, c: @}",
    "[*].[@, @, @, @]",
    "map(&[body, body, body], @)",
    "map(&sort_by(tags, &@), @)",
    "map(&join(body, tags), @)",
    "[*].to_string(@)",
    "join('', [*].to_string(@))",
    "grep('(.*){300}Z')",
    f"grep('(?i){'w?' * 40}Z')",
    "grep('7')",
    "grep('a|b|c|d|e')",
    "grep('name')",
    "[grep('q'), grep('w'), grep('z'), grep('y'), grep('x')]",
    f"[{', '.join(['length(@)'] * 300)}]",
    f"[{', '.join(['[*].id'] * 300)}]",
    f"[{', '.join(['sum([*].n)'] * 100)}]",
    f"[{', '.join(['sort_by(@, &n)[0]'] * 60)}]",
    f"[{', '.join(['count_by(@, &by.login)'] * 60)}]",
    "@ == @",
    "[?@ == @]",
    "[?to_string(@) == to_string(@)]",
    "[*].[*].[*]",
    "[*].* | [].*",
    "entries(group_by(@, &name))",
    "outline()",
    "[?n != `0`] | [?n != `1`] | [?n != `2`] | [?n != `3`] | [?n != `4`] | sort_by(@, &n)",
    "unique([*].to_string(@))",
    "not_null([*].zzz, @)",
    "[?!zzz]",
    "[*].body[::-1]",
    "[*].body | join(@[0], @)",
)
_VALUES = (
    "sort(@)",
    "unique(@)",
    "join('x', @)",
    "count_by(@, &@)",
    "grep('t9')",
    "grep('(t|9)*8(.*){40}Z')",
    "[?contains(@, '77')]",
    "[?starts_with(@, 't9')]",
    "[?matches(@, '(t|9)*8(.*){40}Z')]",
    "sort_by(@, &@)",
    "reverse(sort(@))",
)
_MAP = (
    "entries(@)",
    "keys(@)",
    "values(@)",
    "*.v",
    "grep('k9')",
    "grep('(k|9)*8(.*){40}Z')",
    "sort(keys(@))",
    "outline()",
)
_ARRAYS = ("[][][]", "[*][*][*]", "[*][*][*][*].x", "grep('77')", "sort([][][])")


def rows(size: int = SIZE) -> bytes:
    """Return an array of objects of about so many bytes."""
    dice = random.Random(3)
    return _json(
        {
            "id": n,
            "name": f"name {n}",
            "n": dice.random(),
            "tags": ["a", "b", str(n % 7)],
            "by": {"login": f"u{n % 99}"},
            "body": "word " * 20,
        }
        for n in range(size // 215)
    )


VIEWS = {"text": _TEXT, "rows": _ROWS, "texts": _VALUES, "map": _MAP, "arrays": _ARRAYS}


def document(kind: str, size: int = SIZE) -> bytes:
    """Return the document of about so many bytes that the views of a kind are for."""
    dice = random.Random(3)
    match kind:
        case "text":
            return json.dumps("".join(dice.choices("abc \n", k=size))).encode()
        case "rows":
            return rows(size)
        case "texts":
            return _json(f"t{dice.randrange(10**6)}" for _ in range(size // 11))
        case "map":
            return json.dumps({f"k{n}": {"v": n} for n in range(size // 24)}).encode()
        case _:
            return _json([[i] for i in range(1000)] for _ in range(size // 7900))


def _json(values: Iterator[object]) -> bytes:
    return json.dumps([*values]).encode()


def seconds(document: bytes, view: str) -> tuple[float, str]:
    """Return the seconds of a processor that a view takes, and what is answered."""
    frame = snapshot_of(RULE, tool_result(json.dumps([1] * 9000))).frame
    job = ShapeJob(
        rule=rule(RULE), tool="t", id=b"1", snapshot=Snapshot(frame, document), view=view
    )
    start = time.process_time()
    outcome = shape(job)
    return time.process_time() - start, outcome.outcome


def main() -> None:
    measured = [
        (*seconds(raw, view), kind, view)
        for kind, views in VIEWS.items()
        for raw in (document(kind),)
        for view in views
    ]
    for duration, outcome, kind, view in sorted(measured, reverse=True):
        sys.stdout.write(f"{duration:5.2f} s  {outcome:8} {kind:7} {view[:70]}\n")
    sys.stdout.write(f"{len(measured)} views of {SIZE:,} bytes, at most {max(measured)[0]:.2f} s\n")


if __name__ == "__main__":
    main()
