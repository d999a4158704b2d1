"""Jobs and outcomes between two processes: what comes of a job there is what comes of it here."""

import struct
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from proxy.document.tree import encode, loads
from proxy.ruleset.selection import load
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.shaping.pipeline import shape
from proxy.storage.snapshots import Snapshot
from proxy.testing import cases
from proxy.transforms import TRANSFORMS
from proxy.transports.workers.process import WorkerMessage
from tests.given import answer, document, rule
from tests.reference import examples

SECONDS = 60.0
ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*ROOT.glob("rules/*.yaml"), *ROOT.glob("examples/*/rules*.yaml")])

DOCUMENT: dict[str, Any] = {
    "items": [
        {"id": number, "n": 1.10, "title": f"a-{number}.md", "labels": [{"name": "bug"}]}
        for number in range(30)
    ],
    "text": "the first line\n\nthe second line\n" * 20,
    "log": "found 2\n[1, 2]",
    "total": 30,
}

# Every transform, as its doctest shows it.
EXAMPLES = {
    f"{name} {number}": run
    for name, kind in TRANSFORMS.items()
    for number, run in enumerate(examples.runs(kind))
}


def there_and_back(job: ShapeJob) -> ShapeResult | str:
    """Shape a job as another process would, to which only bytes can be sent."""
    received = sent(WorkerMessage.of(job)).value()
    outcome: ShapeResult | str = sent(WorkerMessage.of(shape(received), received.raw)).value(
        job.raw
    )
    return outcome


def sent(message: WorkerMessage) -> WorkerMessage:
    stream = BytesIO()
    message.write(stream)
    stream.seek(0)
    return WorkerMessage.read(stream)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_case_of_a_rule_file_comes_out_the_same_in_another_process(path: Path) -> None:
    [file] = load([str(path)], allow_python=True)
    shaped = [
        pair
        for owner, _, case in cases.cases(file)
        if not owner.foreign  # those are never sent to another process
        for pair in cases.play_case(file, owner, case).play.shaped
    ]

    assert shaped or all(owner.foreign for owner in file.rules)
    assert [there_and_back(job) for job, _ in shaped] == [outcome for _, outcome in shaped]


def test_numbers_among_the_arguments_are_spelled_as_they_came() -> None:
    arguments = loads(b'{"a":1.10,"b":[12345678901234567890123,1e400]}')
    job = ShapeJob(rule=rule("response: [{keep: [a]}]"), tool="t", id=b"1", arguments=arguments)

    received = sent(WorkerMessage.of(job)).value()

    assert encode(received.arguments) == b'{"a":1.10,"b":[12345678901234567890123,1e400]}'


def test_a_response_that_stays_as_it_came_is_not_sent_back() -> None:
    raw = answer(document(DOCUMENT))
    job = ShapeJob(rule=rule("response: [{drop: nothing}]"), tool="t", id=b"1", raw=raw)
    back = BytesIO()
    WorkerMessage.of(shape(job), raw).write(back)
    back.seek(0)

    assert len(back.getvalue()) < 1_000 < len(raw)
    assert WorkerMessage.read(back).value(raw).raw is raw


def test_a_message_that_is_cut_anywhere_is_the_end() -> None:
    snapshot = Snapshot(b"{}", b"[1]")
    job = ShapeJob(rule=rule("response: [{keep: [a]}]"), tool="t", id=b"1", snapshot=snapshot)
    stream = BytesIO()
    WorkerMessage.of(job).write(stream)
    whole = stream.getvalue()

    assert WorkerMessage.read(BytesIO(whole)).value().snapshot == snapshot
    for end in range(len(whole)):
        with pytest.raises(EOFError):
            WorkerMessage.read(BytesIO(whole[:end]))


def test_a_worker_that_has_no_memory_for_what_it_is_asked_ends() -> None:
    command = [sys.executable, "-c", "from proxy.transports.workers.process import serve; serve()"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        worker.stdin.write(struct.pack("<QQQ", 1 << 62, 0, 0))
        worker.stdin.flush()
        try:
            assert worker.wait(SECONDS) == 1
        finally:
            worker.kill()
