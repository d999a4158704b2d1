"""What the wrapper does where the system has no more for it, and where its clock jumps (Linux).

One call fails, the process lives. Limits are set while it runs, to a little over what it has.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxy.storage.ledger import LedgerError
from proxy.storage.ledger import rows as totals
from tests.faults.processes import memory, until
from tests.faults.puppets import Puppet
from tests.faults.routes import Local, answer_of, failure
from tests.faults.scale import some
from tests.faults.sidecar import ROOT, keys, said, serving, soon
from tests.faults.sidecar import call as posted
from tests.faults.wrapper import (
    OWN,
    Wrapped,
    call,
    command,
    naughty,
    ok,
    wrapped,
)

MB = 1 << 20
ROW = '{"a":1.0,"noise":[1,2,3]}'
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
@pytest.mark.parametrize("spare", some([0, 40, 56], 0, 56))
def test_a_line_that_there_is_no_memory_for_costs_its_call_alone(rules: Path, spare: int) -> None:
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
    [logged] = said(ended.stderr)
    assert NO_MEMORY in logged or logged.startswith(UNSHAPED)


@pytest.mark.fault(47, "stdio")
@pytest.mark.parametrize("spare", some([0, 24, 32, 64], 32, 64))
def test_an_answer_that_there_is_no_memory_to_shape_passes_as_it_came(
    rules: Path, spare: int
) -> None:
    count = 200_000
    came = ok(2, f"[{','.join([ROW] * count)}]")
    shaped = ok(2, f"[{','.join([SHAPED] * count)}]")
    with wrapped("rows", options=("--rules", str(rules))) as wire:
        with wire.sound():
            limit(wire, resource.RLIMIT_AS, memory(wire.process.pid, "VmSize") + spare * MB)
            wire.write(call(2, str(count)) + call(3))
            line = wire.line()
            assert line in (came, shaped)
            assert wire.line() == ok(3)
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")
    failed = f"warning: shaping: {count}: failed at MemoryError: for a document of {len(came) - 1}"
    assert said(ended.stderr) == ([f"{failed} bytes"] if line == came else [])
    assert (line == came) is (spare < 40)


@pytest.mark.fault(47, "stdio")
def test_without_descriptors_calls_are_answered_and_other_rules_are_read_later(
    rules: Path, tmp_path: Path
) -> None:
    options = ("--rules", str(rules), "--ledger", str(tmp_path / "ledger.db"))
    with wrapped("rows", options=options) as wire:
        # The ledger opens its files with the first call, and is done once that is recorded.
        assert rows(wire) == SHAPED
        until(lambda: recorded(tmp_path / "ledger.db"))
        with wire.sound():
            before = resource.prlimit(wire.process.pid, resource.RLIMIT_NOFILE)[0]
            limit(wire, resource.RLIMIT_NOFILE, next_descriptor(wire))
            assert rows(wire) == SHAPED
            rules.write_text(RULES.replace("noise", "a"))
            kept = f"warning: the rules have changed, but the old ones stay: {rules}"
            said_once = [f"{kept}: too many open files"]
            until(lambda: rows(wire) == SHAPED and wire.log() == said_once)
            for _ in range(50):
                assert rows(wire) == SHAPED
            assert wire.log() == said_once
            limit(wire, resource.RLIMIT_NOFILE, before)
            rules.write_text(RULES.replace("noise", "[a, b]"))
            until(lambda: rows(wire) == '{"noise":[1,2,3]}')
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")


def recorded(ledger: Path) -> bool:
    try:
        return bool(totals(str(ledger)))
    except LedgerError:
        return False


def next_descriptor(wire: Wrapped) -> int:
    """Return the number that the next descriptor would have."""
    taken = {int(entry.name) for entry in Path(f"/proc/{wire.process.pid}/fd").iterdir()}
    return min(set(range(len(taken) + 1)) - taken)


def rows(wire: Wrapped) -> str:
    answer = wire.ask(posted(next(wire.ids), "10"))
    [block] = json.loads(answer)["result"]["content"]
    return json.dumps(json.loads(block["text"])[0], separators=(",", ":"))


@pytest.mark.fault(47, "stdio")
@pytest.mark.parametrize("most", some([5, 9, 10, 11], 5, 10))
def test_where_the_server_finds_no_descriptors_it_says_so(most: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    started = subprocess.run(
        command("plain"),
        cwd=ROOT,
        input=b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n',
        capture_output=True,
        preexec_fn=few,
        check=False,
        timeout=20,
    )
    reason = f"'{sys.executable}' cannot be started: too many open files"
    assert started.returncode == 127
    assert reason in started.stderr.decode()
    assert b"Traceback" not in started.stderr
    if started.stdout or most > 9:
        assert json.loads(started.stdout)["error"]["message"] == reason


JUMPING = (sys.executable, str(Path(__file__).with_name("jumping.py")))
PUPPET = naughty("puppet")
PAGES = """\
version: 1
rules:
- {name: pages, tools: list, response: [{paginate: {limit: 2}}]}
"""
LISTED = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"[1,2,3,4]"}]}}'
DEADLINE = "no answer within 1 second and no progress; the call was cancelled"


@pytest.fixture
def pages(tmp_path: Path) -> tuple[str, ...]:
    """Return options: rules, a ledger, a deadline of a second."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(PAGES)
    return ("--rules", str(rules), "--ledger", str(tmp_path / "ledger.db"), "--deadline", "1")


def days(errors: bytes) -> set[str]:
    lines = [line for line in errors.splitlines() if line.startswith(b'{"time":')]
    return {json.loads(line)["time"][:10] for line in lines}


def listing(id: int, **window: int) -> bytes:
    return posted(id, "list", arguments={"says": LISTED.hex(), **window})


def shown(raw: bytes) -> dict[str, object]:
    [block] = json.loads(raw)["result"]["content"]
    page: dict[str, object] = json.loads(block["text"])
    return page


@pytest.mark.fault(47, "stdio")
def test_a_clock_that_jumps_makes_nothing_early_or_late(pages: tuple[str, ...]) -> None:
    own = [*JUMPING, "--verbose", "--log-format", "json", *pages]
    with Wrapped([*own, *PUPPET]) as wire:
        puppet = Puppet(wire)
        [first] = wire.answer(listing(1) + b"\n")
        assert shown(first)["items"] == [1, 2]
        puppet.heard()
        with soon(2.0):
            began = time.monotonic()
            [late] = wire.answer(posted(2, "any", arguments={"says": ""}) + b"\n")
            assert failure(late, 2).startswith(DEADLINE)
            assert time.monotonic() - began >= 1.0
        puppet.heard()
        # Kept for half an hour, and not asked for anew.
        for offset in (1, 2, 3) * 4:
            [page] = wire.answer(listing(3, offset=offset) + b"\n")
            assert shown(page)["items"] == [1, 2, 3, 4][offset : offset + 2]
        assert puppet.heard() == b""
        assert wire.close().code == 0
        assert len(days(bytes(wire.errors))) > 1


@pytest.mark.fault(47, "stdio")
def test_a_monotonic_clock_that_jumps_back_ends_no_thread(
    pages: tuple[str, ...], tmp_path: Path
) -> None:
    library, jumps = tmp_path / "backward.so", tmp_path / "jumps"
    source = Path(__file__).with_name("backward.c")
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    except OSError:
        pytest.skip("no C compiler: nothing else can set this clock back")
    changed = ("env", f"LD_PRELOAD={library}", f"JUMPS={jumps}")
    own = [*changed, *OWN, *pages, "--snapshot-age", "1"]
    with Wrapped([*own, *PUPPET]) as wire:
        wire.works()
        threads = steady_threads(wire)
        jumps.touch()
        for _ in range(30):  # longer than the deadline, and than it takes to look at snapshots
            wire.works()
            time.sleep(0.1)
        assert steady_threads(wire) == threads
        assert wire.close().code == 0
        assert bytes(wire.errors) == b""


def steady_threads(wire: Wrapped) -> int:
    counts = []
    for _ in range(20):
        counts.append(wire.holds.threads)
        time.sleep(0.05)
    return min(counts)


@pytest.mark.fault(47, "http")
def test_a_clock_that_jumps_ends_no_session_early_or_late(pages: tuple[str, ...]) -> None:
    options = (*keys(limits={"idle_seconds": 2}), *pages)
    with serving(*options, *PUPPET, program=JUMPING) as sidecar:
        local = Local(sidecar)
        idle = sidecar.begin()
        assert shown(answer_of(sidecar.post(listing(1), local.session)))["items"] == [1, 2]
        late = answer_of(sidecar.post(posted(2, "any", arguments={"says": ""}), local.session))
        assert failure(late, 2).startswith(DEADLINE)
        for offset in (1, 2, 3) * 4:
            page = sidecar.post(listing(3, offset=offset), local.session)
            assert shown(answer_of(page))["items"] == [1, 2, 3, 4][offset : offset + 2]
        # What is used is not idle; what is not used is ended.
        until(lambda: used(local) and len(sidecar.children) == 2, 20.0)
        assert sidecar.post(posted(8), idle).status == 404
        assert len(days(bytes(sidecar.errors))) > 1


def used(local: Local) -> bool:
    """Use a session, which must be there."""
    assert local.sidecar.post(posted(9), local.session).status == 200
    return True
