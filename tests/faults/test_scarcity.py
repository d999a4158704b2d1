"""The wrapper in a system without resources, and with a clock that jumps (Linux).

One call fails, the process lives. Limits are set while it runs, to a little over what it has.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path

import pytest
from mcp_abridge.storage.ledger import LedgerError
from mcp_abridge.storage.ledger_totals import rows as totals

from tests.builders import texts
from tests.faults.asking import Start, each_way, over_http
from tests.faults.naughty import table
from tests.faults.processes import memory, until
from tests.faults.routes import Local, failure
from tests.faults.scale import scaled
from tests.faults.sidecar import call as posted
from tests.faults.sidecar import keys, log_messages, soon
from tests.faults.wrapper import Wrapped, call, naughty, ok, wrapped

MB = 1 << 20
SHAPED = '{"a":1.0}'
LONG = 50 * MB
RULES = """\
version: 1
rules:
- {name: shaping, tools: "*0", response: [{drop: noise}]}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES)
    return file


def limit(wire: Wrapped, kind: int, most: int) -> None:
    resource.prlimit(wire.process.pid, kind, (most, resource.prlimit(wire.process.pid, kind)[1]))


NO_MEMORY = "there is no memory for a message of "
UNSHAPED = f"warning: shaping: {LONG}: failed at MemoryError: for a document of "


@pytest.mark.fault(47, "stdio")
@pytest.mark.parametrize("spare", [56, 0][: scaled(1, 2)])
def test_a_line_too_large_for_the_memory_costs_its_call_alone(rules: Path, spare: int) -> None:
    with wrapped("large", options=("--rules", str(rules))) as wire:
        with wire.sound():
            limit(wire, resource.RLIMIT_AS, memory(wire.process.pid, "VmSize") + spare * MB)
            wire.write(call(2, str(LONG)) + call(3))
            line = wire.line()
            assert line == ok(2, "x" * LONG) or failure(line, 2).startswith(NO_MEMORY)
            assert (spare < 50) is (len(line) < LONG)
            assert wire.line() == ok(3)
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")
    [logged] = log_messages(ended.stderr)
    assert NO_MEMORY in logged or logged.startswith(UNSHAPED)


@pytest.mark.fault(47, "stdio")
@pytest.mark.parametrize("spare", [32, 64][: scaled(1, 2)])
def test_an_answer_too_large_for_the_memory_to_shape_it_passes_as_it_came(
    rules: Path, spare: int
) -> None:
    count = 200_000
    original = ok(2, table(count))
    shaped = ok(2, table(count, SHAPED))
    with wrapped("rows", options=("--rules", str(rules))) as wire:
        with wire.sound():
            limit(wire, resource.RLIMIT_AS, memory(wire.process.pid, "VmSize") + spare * MB)
            wire.write(call(2, str(count)) + call(3))
            line = wire.line()
            assert line in (original, shaped)
            assert wire.line() == ok(3)
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")
    failed = (
        f"warning: shaping: {count}: failed at MemoryError: for a document of {len(original) - 1}"
    )
    assert log_messages(ended.stderr) == ([f"{failed} bytes"] if line == original else [])
    assert (line == original) is (spare < 40)


@pytest.mark.fault(47, "stdio")
def test_without_descriptors_calls_are_answered_and_other_rules_are_read_later(
    rules: Path, tmp_path: Path
) -> None:
    options = ("--rules", str(rules), "--ledger", str(tmp_path / "ledger.db"))
    shaped = table(10, SHAPED)
    with wrapped("rows", options=options) as wire:
        # The ledger opens its files with the first call, and is done once that is recorded.
        assert ten_rows(wire) == shaped
        until(lambda: recorded(tmp_path / "ledger.db"))
        with wire.sound():
            before = resource.prlimit(wire.process.pid, resource.RLIMIT_NOFILE)[0]
            limit(wire, resource.RLIMIT_NOFILE, next_descriptor(wire))
            assert ten_rows(wire) == shaped
            rules.write_text(RULES.replace("noise", "a"))
            warning = f"warning: the rules have changed, but the old ones stay: {rules}"
            said_once = [f"{warning}: too many open files"]
            until(lambda: ten_rows(wire) == shaped and wire.log() == said_once)
            for _ in range(50):
                assert ten_rows(wire) == shaped
            assert wire.log() == said_once
            limit(wire, resource.RLIMIT_NOFILE, before)
            rules.write_text(RULES.replace("noise", "[a, b]"))
            until(lambda: ten_rows(wire) == table(10, '{"noise":[1,2,3]}'))
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")


def recorded(ledger: Path) -> bool:
    try:
        return bool(totals(str(ledger)))
    except LedgerError:
        return False


def next_descriptor(wire: Wrapped) -> int:
    """Return the number that the next descriptor would have."""
    numbers = {int(entry.name) for entry in Path(f"/proc/{wire.process.pid}/fd").iterdir()}
    return min(set(range(len(numbers) + 1)) - numbers)


def ten_rows(wire: Wrapped) -> str:
    return texts(wire.ask(posted(next(wire.ids), "10")))[0]


JUMPING = (sys.executable, str(Path(__file__).with_name("jumping.py")))
PAGES = """\
version: 1
rules:
- {name: pages, tools: list, response: [{paginate: {limit: 2}}]}
"""
LISTED = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"[1,2,3,4]"}]}}'
DEADLINE = "no answer within 1 second and no progress; the call was cancelled"


def listing(id: int, **window: int) -> bytes:
    return posted(id, "list", arguments={"says": LISTED.hex(), **window})


def items(raw: bytes) -> list[int]:
    """Return the items of a page."""
    numbers: list[int] = json.loads(texts(raw)[0])["items"]
    return numbers


@each_way(47)
def test_a_clock_that_jumps_makes_nothing_early_or_late(start: Start, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(PAGES)
    options = ["--rules", str(rules), "--ledger", str(tmp_path / "ledger.db"), "--deadline", "1"]
    if start is over_http:
        options += keys(limits={"idle_seconds": 2})
    with start("--verbose", *options, program=JUMPING, server=naughty("puppet")) as client:
        unused = client.sidecar.begin() if isinstance(client, Local) else ""
        assert items(client.ask(listing(1))) == [1, 2]
        with soon(2.0):
            since = time.monotonic()
            late = client.ask(posted(2, "any", arguments={"says": ""}))
            assert failure(late, 2).startswith(DEADLINE)
            assert time.monotonic() - since >= 1.0
        client.ask(posted(3, "heard"))
        # StoredAnswer for half an hour, and not asked for anew.
        for offset in (1, 2, 3) * 4:
            assert items(client.ask(listing(4, offset=offset))) == [1, 2, 3, 4][offset : offset + 2]
        assert texts(client.ask(posted(5, "heard"))) == [""]
        if isinstance(client, Local):
            # What is used is not idle; what is not used is ended.
            sidecar = client.sidecar
            until(lambda: bool(client.ask(posted(9))) and len(sidecar.children) == 2, 20.0)
            assert sidecar.post(posted(8), unused).status == 404
        days = set(re.findall(rb'^{"time":"([-0-9]{10})', client.errors, re.MULTILINE))
        assert len(days) > 1
