"""Real worker processes: their results, their choice and their end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mcp_abridge.query.patterns import Expression
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob
from mcp_abridge.transforms.jmespath import Jmespath
from mcp_abridge.transports.workers import pool
from mcp_abridge.transports.workers.pool import Workers
from msgspec.structs import replace

from tests.builders import answer, document, rule
from tests.faults.processes import until
from tests.transports.processes import alive, wait_gone
from tests.transports.steps import Step, UnpicklableStep
from tests.transports.workers.doing import RAW, SECONDS, doing, failed, step_document

ROOT = Path(__file__).resolve().parents[3]
HERE = os.getpid()


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(processes=2)
    yield workers
    workers.close()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that a job reads to its end: it waits until the other end is opened and closed."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


async def process_of(workers: Workers, job: ShapeJob) -> int:
    return int(step_document(await workers.shape(job))["process"])


@pytest.mark.parametrize(
    "text",
    [
        "response: [{paginate: {at: items, limit: 20}}]",
        "response: [{keep: [items.id]}]",
        "response: [{drop: nothing}]",
        "response: [{jmespath: 'sum(items[].text)'}]",
        "response: []\nmax_bytes: 2000",
        "output_schema: {type: object, properties: {items: {maxItems: 9}}}\nvalidate: warn",
    ],
)
async def test_a_large_document_is_shaped_as_in_this_process(workers: Workers, text: str) -> None:
    job = ShapeJob(rule=rule(text), tool="tool", id=b"1", raw=RAW, keep=True)
    outcome = await workers.shape(job)

    assert outcome == pipeline.shape(job)
    if outcome.snapshot is not None:
        words = {"limit": 10, "offset": 40_000}
        page = replace(job, id=b"2", raw=None, snapshot=outcome.snapshot, arguments=words)
        assert await workers.shape(page) == pipeline.shape(page)


async def test_only_large_documents_and_rules_with_many_steps_leave_this_process(
    workers: Workers,
) -> None:
    bound = Workers(processes=1, max_here=len(RAW))
    some = answer(document({"a": "x" * 100_000}))
    four = (Step("tell"),) * 4

    assert await process_of(workers, doing("tell", raw=answer(document({})))) == HERE
    assert await process_of(workers, doing("tell", raw=some)) == HERE
    assert await process_of(bound, doing("tell")) == HERE
    assert await process_of(workers, doing("tell")) != HERE
    assert await process_of(workers, doing("tell", raw=some, pipeline=four)) != HERE
    bound.close()


def burning(expression: str) -> ShapeJob:
    """Make a job with a small response that evaluates this, then names its process."""
    small = answer(document({"items": list(range(2000))}))
    steps = (Jmespath(Expression(expression)), Step("tell"))
    return doing("tell", raw=small, pipeline=steps)


FEW = "items[0]"
MANY = "items[?@ > `5`] | [?@ > `4`] | [?@ > `3`] | [?@ > `2`] | [?@ > `1`] | [?@ > `0`]"


async def test_a_rule_that_takes_long_once_is_shaped_by_another_process_afterwards(
    workers: Workers,
) -> None:
    assert await process_of(workers, burning(FEW)) == HERE
    job = burning(MANY)
    there = await process_of(workers, job)
    assert there != HERE

    few = replace(job, raw=answer(document({"items": [1]})))
    assert await process_of(workers, few) == there
    assert await process_of(workers, replace(few, rule=burning(MANY).rule)) == HERE


async def test_one_process_is_reserved_for_jobs_that_end_soon(
    workers: Workers, pipe: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    os.mkfifo(other)
    jobs = []
    for each in (pipe, other):
        steps = (Jmespath(Expression("@")), Step("read", str(each)))
        jobs.append(asyncio.create_task(workers.shape(doing("read", pipeline=steps))))
    other_end = await asyncio.to_thread(pipe.open, "wb")  # there is one once it is at it
    jobs[0].cancel()  # nobody waits for it any more, but it goes on

    for _ in range(3):
        assert await process_of(workers, doing("tell")) != HERE
    other_end.close()
    await asyncio.to_thread(other.write_bytes, b"go on")
    assert step_document(await jobs[1])["process"] != HERE


async def test_without_processes_long_jobs_are_done_in_a_thread() -> None:
    alone = Workers(processes=0, max_here=sys.maxsize)
    assert step_document(await alone.shape(burning(MANY)))["process"] == HERE
    assert step_document(await alone.shape(doing("tell")))["thread"] == "MainThread"
    assert step_document(await alone.shape(burning(MANY)))["thread"] == "shaping"
    alone.close()


async def test_a_rule_with_python_of_its_own_never_leaves_this_process(workers: Workers) -> None:
    here = step_document(await workers.shape(doing("tell", foreign=True)))
    assert (here["process"], here["thread"]) == (HERE, "shaping")


async def test_the_response_of_a_bypassed_rule_is_not_sent_to_a_worker(workers: Workers) -> None:
    outcome = await workers.shape(replace(doing("hang", "nowhere"), bypass=True))
    assert (outcome.raw is RAW, outcome.outcome, outcome.log_line) == (True, "failed", None)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step("leave"), "the worker process: it ended with exit code 7"),
        (Step("die"), "the worker process: it ended by signal 9"),
        (Step("hang"), "the worker process: it took more than 0.5 seconds"),
        (Step("fail"), "step: KeyError: 'no such thing'"),
        (UnpicklableStep("tell"), "the worker process: PicklingError: "),
    ],
)
async def test_a_job_that_fails_in_a_worker_leaves_its_response_unshaped_and_other_jobs_alone(
    step: Step, reason: str, pipe: Path
) -> None:
    workers = Workers(processes=2, seconds=0.5 if step.deed == "hang" else SECONDS)
    other = asyncio.create_task(workers.shape(doing("read", str(pipe))))
    await asyncio.sleep(0)

    assert failed(await workers.shape(doing(step))).startswith(reason)
    if step.deed != "hang":
        assert await process_of(workers, doing("tell")) != HERE
        await asyncio.to_thread(pipe.write_bytes, b"go on")
        assert step_document(await other)["process"] != HERE
    workers.close()


async def test_a_process_that_ends_while_idle_is_replaced(workers: Workers) -> None:
    first = await process_of(workers, doing("tell"))
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)

    assert await process_of(workers, doing("tell")) != first


async def test_output_that_a_step_prints_is_no_part_of_the_response(
    workers: Workers, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await process_of(workers, doing("print")) != HERE
    assert capfd.readouterr() == ("", "not a message\nnor is this\n")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed on Linux")
async def test_there_are_never_more_processes_than_configured_and_none_after_the_end() -> None:
    workers = Workers(processes=2)
    before = os.listdir("/proc/self/fd")
    jobs = (process_of(workers, doing("tell")) for _ in range(12))
    processes = set(await asyncio.gather(*jobs))
    await workers.shape(doing("die"))
    workers.close()
    workers.close()

    assert len(processes) <= 2
    assert not any(map(alive, processes))
    assert os.listdir("/proc/self/fd") == before
    assert await process_of(workers, doing("tell")) == HERE


async def test_a_response_that_is_shaped_at_the_end_goes_out_unshaped(
    tmp_path: Path,
) -> None:
    workers = Workers(processes=1)
    started = tmp_path / "started"
    jobs = [asyncio.create_task(workers.shape(doing("hang", str(started)))) for _ in range(2)]
    await asyncio.to_thread(until, lambda: started.exists() and bool(started.read_text()))
    workers.close()
    outcomes = await asyncio.gather(*jobs)

    assert [failed(outcome) for outcome in outcomes] == [
        "the worker process: it ended by signal 9",
        "the start of a worker process: the proxy is ending",
    ]
    assert [outcome.blameless for outcome in outcomes] == [False, True]
    assert not alive(int(started.read_text()))


KILLED = """
import asyncio, sys
from mcp_abridge.transports.workers.pool import Workers
from tests.transports.workers.doing import doing, step_document

async def main():
    workers = Workers(processes=2)
    busy = asyncio.create_task(workers.shape(doing("hang", sys.argv[1])))
    print(step_document(await workers.shape(doing("tell")))["process"], flush=True)
    await busy

asyncio.run(main())
"""


def test_no_process_outlives_one_that_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(started)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        idle = int(parent.stdout.readline())
        until(lambda: started.exists() and bool(started.read_text()))
        busy = int(started.read_text())
        assert alive(idle)
        assert alive(busy)
        parent.kill()
    try:
        wait_gone(idle)
        wait_gone(busy)
    finally:
        with suppress(ProcessLookupError):
            os.kill(busy, signal.SIGKILL)


def python(deed: str, place: str = "") -> ShapeJob:
    """Return a job of a rule with Python of its own."""
    return doing(deed, place, foreign=True)


async def test_a_job_that_takes_too_long_is_abandoned_and_the_next_one_is_done(pipe: Path) -> None:
    hasty = Workers(thread_seconds=1.0)
    first = asyncio.create_task(hasty.shape(python("read", str(pipe))))
    second = asyncio.create_task(hasty.shape(python("tell")))

    assert failed(await first) == (
        "the worker thread: it took more than 1 seconds; its thread was left alone"
    )
    assert (await second).outcome == "shaped"
    await asyncio.to_thread(pipe.write_bytes, b"go on")


async def test_the_number_of_abandoned_threads_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_MOST_ABANDONED", 2)
    hasty = Workers(thread_seconds=0.1)
    pipes = [tmp_path / "a", tmp_path / "b"]
    for pipe in pipes:
        os.mkfifo(pipe)
        reason = failed(await hasty.shape(python("read", str(pipe))))
        assert reason.endswith("its thread was left alone")

    refusal = await hasty.shape(python("tell"))
    assert refusal.blameless
    assert failed(refusal) == ("the worker thread: 2 threads are taken up by rules that do not end")
    await asyncio.to_thread(pipes[0].write_bytes, b"go on")
    async with asyncio.timeout(SECONDS):
        while (await hasty.shape(python("tell"))).outcome != "shaped":
            await asyncio.sleep(0.01)
    await asyncio.to_thread(pipes[1].write_bytes, b"go on")


ENDING = """
import asyncio
from mcp_abridge.transports.workers.pool import Workers
from tests.transports.workers.doing import doing

async def main():
    workers = Workers(thread_seconds=0.05)
    print((await workers.shape(doing("spin", foreign=True))).outcome, flush=True)

asyncio.run(main())
"""


def test_a_job_that_does_not_end_keeps_no_process_from_ending() -> None:
    process = subprocess.run(
        [sys.executable, "-c", ENDING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "failed\n", "")


async def test_the_views_of_one_caller_do_not_wait_for_all_of_another(
    workers: Workers, pipe: Path
) -> None:
    order: list[str] = []

    async def ask(caller: str, *steps: Step) -> None:
        job = doing("tell", pipeline=(Jmespath(Expression("@")), *steps))
        await workers.shape(job, caller)
        order.append(caller)

    tasks = [asyncio.create_task(ask("greedy", Step("read", str(pipe))))]
    end = await asyncio.to_thread(pipe.open, "wb")
    tasks += [asyncio.create_task(ask("greedy", Step("tell"))) for _ in range(5)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(ask("other", Step("tell"))))
    end.close()
    await asyncio.gather(*tasks)

    assert order[:2] == ["greedy", "other"]
