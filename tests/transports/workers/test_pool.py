"""Real worker processes: what comes of them, what becomes of them, and what happens if they die."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.document.fuel import LITTLE
from proxy.document.patterns import Expression
from proxy.ruleset.rule import Rule
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transforms.jmespath import Jmespath
from proxy.transports.workers.pool import Workers
from tests.given import answer, document, result, rule, texts
from tests.threadless import threadless
from tests.transports.steps import Clinging, Step

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60.0
LARGE = {"items": [{"id": number, "text": "lorem ipsum"} for number in range(50_000)]}
RAW = answer(document(LARGE))


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(processes=2)
    yield workers
    workers.close()


def doing(deed: str, place: str = "", **members: Any) -> ShapeJob:
    """Return a job with a large response, whose one step does `deed`."""
    rule = Rule(name="rule", tools=("*",), pipeline=(Step(deed, place),), **members)
    return ShapeJob(rule=rule, tool="tool", id=b"1", raw=RAW)


def told(outcome: ShapeResult) -> dict[str, Any]:
    """Return what the step told of its process."""
    assert outcome.outcome == "shaped", outcome.log_line
    step: dict[str, Any] = json.loads(texts(outcome.raw)[0])
    return step


def until(wanted: Callable[[], bool]) -> None:
    """Wait for what a process does on its own; fail after a while."""
    end = time.monotonic() + SECONDS
    while not wanted():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def gone(process: int) -> bool:
    """Say whether a process runs no more, whoever has yet to take note of it."""
    try:
        os.kill(process, 0)
        stat = Path(f"/proc/{process}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


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
async def test_a_large_document_comes_out_as_if_it_was_shaped_here(
    workers: Workers, text: str
) -> None:
    made = rule(text)
    job = ShapeJob(rule=made, tool="tool", id=b"1", raw=RAW, keep=True)
    outcome = await workers.shape(job)

    assert outcome == pipeline.shape(job)
    if outcome.snapshot is not None:
        page = ShapeJob(
            rule=made,
            tool="tool",
            id=b"2",
            snapshot=outcome.snapshot,
            arguments={"limit": 10, "offset": 40_000},
        )
        assert await workers.shape(page) == pipeline.shape(page)


async def test_only_large_documents_leave_this_process(workers: Workers) -> None:
    small = answer(document({"items": []}))
    bound = Workers(processes=1, max_here=len(RAW))

    here = [
        told(await workers.shape(ShapeJob(rule=doing("tell").rule, tool="t", id=b"1", raw=small))),
        told(await bound.shape(doing("tell"))),
    ]
    bound.close()
    there = told(await workers.shape(doing("tell")))

    assert [each["process"] for each in here] == [os.getpid()] * 2
    assert there["process"] != os.getpid()


def burning(units: str) -> ShapeJob:
    """Return a job with a small response, which needs so much fuel; then its process is told."""
    steps = (Jmespath(Expression(units)), Step("tell"))
    small = answer(document({"items": list(range(2000))}))
    return ShapeJob(rule=Rule(name="r", tools=("*",), pipeline=steps), tool="t", id=b"1", raw=small)


FEW = "items[0]"
MANY = "items[?@ > `5`] | [?@ > `4`] | [?@ > `3`] | [?@ > `2`] | [?@ > `1`] | [?@ > `0`]"


async def test_where_no_thread_was_to_be_had_others_have_their_turn_all_the_same() -> None:
    workers = Workers(processes=2)
    costly = replace(doing("tell"), view="items")
    with threadless():
        for _ in range(2):
            with pytest.raises(RuntimeError):
                await workers.shape(costly)

    async with asyncio.timeout(SECONDS):
        assert (await workers.shape(costly)).outcome == "view"
    workers.close()


async def test_a_rule_that_takes_more_than_a_little_goes_to_another_process_from_then_on(
    workers: Workers,
) -> None:
    assert told(await workers.shape(burning(FEW)))["process"] == os.getpid()
    job = burning(MANY)
    there = told(await workers.shape(job))
    assert there["process"] != os.getpid()

    few = replace(job, raw=answer(document({"items": [1]})))
    assert told(await workers.shape(few)) == there
    other_rule = replace(few, rule=burning(MANY).rule)
    assert told(await workers.shape(other_rule))["process"] == os.getpid()


async def test_a_view_that_takes_more_than_a_little_is_answered_all_the_same(
    workers: Workers,
) -> None:
    made = rule("response: [{abridge: 2000}]")
    raw = answer(document({"items": list(range(5000))}))
    job = ShapeJob(rule=made, tool="t", id=b"1", raw=raw, view="items[?@ > `5`] | sum(@)")
    outcome = await workers.shape(job)

    assert pipeline.shape(replace(job, fuel=LITTLE)).out_of_fuel
    assert outcome == pipeline.shape(job)
    assert outcome.outcome == "view"


async def test_one_process_is_left_for_what_is_sure_to_end_soon(
    workers: Workers, tmp_path: Path
) -> None:
    pipes = [tmp_path / "a", tmp_path / "b"]
    jobs = []
    for pipe in pipes:
        os.mkfifo(pipe)
        steps = (Jmespath(Expression("@")), Step("read", str(pipe)))
        held = Rule(name="rule", tools=("*",), pipeline=steps)
        jobs.append(
            asyncio.create_task(workers.shape(ShapeJob(rule=held, tool="t", id=b"1", raw=RAW)))
        )
    other_end = await asyncio.to_thread(pipes[0].open, "wb")  # there is one once it is at it
    jobs[0].cancel()  # nobody waits for it any more, but it goes on

    for _ in range(3):
        assert told(await workers.shape(doing("tell")))["process"] != os.getpid()
    other_end.close()
    await asyncio.to_thread(pipes[1].write_bytes, b"go on")
    assert told(await jobs[1])["process"] != os.getpid()


async def test_without_processes_what_takes_long_is_done_in_a_thread() -> None:
    alone = Workers(processes=0, max_here=sys.maxsize)
    try:
        assert told(await alone.shape(burning(MANY)))["process"] == os.getpid()
        assert told(await alone.shape(doing("tell")))["thread"] == "MainThread"
        assert told(await alone.shape(burning(MANY)))["thread"] == "shaping"
    finally:
        alone.close()


async def test_rules_with_many_steps_are_not_held_to_be_short(workers: Workers) -> None:
    raw = answer(document({"a": "x" * 100_000}))
    one, four = ((Step("tell"),) * count for count in (1, 4))
    for steps, away in ((one, False), (four, True)):
        held = Rule(name="rule", tools=("*",), pipeline=steps)
        outcome = await workers.shape(ShapeJob(rule=held, tool="t", id=b"1", raw=raw))
        assert (told(outcome)["process"] != os.getpid()) is away


async def test_a_rule_with_python_of_its_own_never_leaves_this_process(workers: Workers) -> None:
    here = told(await workers.shape(doing("tell", foreign=True)))
    assert (here["process"], here["thread"]) == (os.getpid(), "shaping")


async def test_there_are_never_more_processes_than_asked_for(workers: Workers) -> None:
    outcomes = await asyncio.gather(*[workers.shape(doing("tell")) for _ in range(12)])

    assert 1 <= len({told(outcome)["process"] for outcome in outcomes}) <= 2


@pytest.mark.parametrize(("deed", "cause"), [("leave", "with exit code 7"), ("die", "by signal 9")])
async def test_a_process_that_ends_costs_the_answer_nothing_but_its_shape(
    workers: Workers, deed: str, cause: str
) -> None:
    outcome = await workers.shape(doing(deed))

    assert outcome.raw is RAW
    assert outcome.outcome == "failed"
    assert outcome.log_line == f"rule: tool: failed at the worker process: it ended {cause}"
    assert told(await workers.shape(doing("tell")))["process"] != os.getpid()


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({"output_schema": {"type": "object"}}, {**document(LARGE), "structuredContent": LARGE}),
        (
            {"on_failure": "refuse"},
            {
                "content": [
                    {"type": "text", "text": "the response was withheld: rule 'rule' failed on it"}
                ],
                "isError": True,
            },
        ),
    ],
)
async def test_a_process_that_ends_breaks_no_promise_of_its_rule(
    workers: Workers, members: dict[str, Any], shown: dict[str, Any]
) -> None:
    outcome = await workers.shape(doing("die", **members))

    assert (outcome.outcome, result(outcome.raw)) == ("failed", shown)


async def test_a_process_that_ends_takes_no_other_job_with_it(
    workers: Workers, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waiting = asyncio.create_task(workers.shape(doing("read", str(pipe))))
    await asyncio.sleep(0)

    assert (await workers.shape(doing("die"))).outcome == "failed"
    await asyncio.to_thread(pipe.write_bytes, b"go on")
    assert told(await waiting)["process"] != os.getpid()


async def test_a_process_that_ended_while_nobody_needed_it_is_replaced(workers: Workers) -> None:
    first = told(await workers.shape(doing("tell")))["process"]
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)

    assert told(await workers.shape(doing("tell")))["process"] != first


async def test_a_rule_that_fails_there_is_told_as_one_that_fails_here(workers: Workers) -> None:
    outcome = await workers.shape(doing("fail"))

    assert outcome == pipeline.shape(doing("fail"))
    assert outcome.log_line == "rule: tool: failed at step: KeyError: 'no such thing'"


async def test_what_cannot_be_sent_there_goes_out_as_it_came(workers: Workers) -> None:
    made = Rule(name="rule", tools=("*",), pipeline=(Clinging("tell"),))
    outcome = await workers.shape(ShapeJob(rule=made, tool="tool", id=b"1", raw=RAW))

    assert (outcome.raw, outcome.outcome) == (RAW, "failed")
    assert outcome.log_line is not None
    assert outcome.log_line.startswith("rule: tool: failed at the way to a worker process: ")


async def test_what_cannot_be_read_there_goes_out_as_it_came(workers: Workers) -> None:
    class Unknown(Step, frozen=True):
        pass

    # It can be sent by this name, and nobody else finds anything under it.
    Unknown.__qualname__ = "Unknown"
    globals()["Unknown"] = Unknown
    try:
        made = Rule(name="rule", tools=("*",), pipeline=(Unknown("tell"),))
        outcome = await workers.shape(ShapeJob(rule=made, tool="tool", id=b"1", raw=RAW))
    finally:
        del globals()["Unknown"]

    assert (outcome.raw, outcome.outcome) == (RAW, "failed")
    assert outcome.log_line is not None
    assert outcome.log_line.startswith("rule: tool: failed at the worker process: AttributeError: ")
    assert told(await workers.shape(doing("tell")))["process"] != os.getpid()


async def test_what_takes_too_long_is_given_up_and_goes_out_as_it_came() -> None:
    hasty = Workers(processes=1, seconds=0.5)
    try:
        outcome = await hasty.shape(doing("hang"))
    finally:
        hasty.close()

    assert (outcome.raw, outcome.outcome) == (RAW, "failed")
    assert outcome.log_line == (
        "rule: tool: failed at the worker process: it took more than 0.5 seconds"
    )


async def test_an_answer_that_nobody_waits_for_is_no_answer_to_another(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    workers = Workers(processes=1)
    try:
        waiting = asyncio.create_task(workers.shape(doing("read", str(pipe))))
        await asyncio.to_thread(pipe.write_bytes, b"started, and went on")
        waiting.cancel()
        job = ShapeJob(rule=rule("response: [{keep: [items.id]}]"), tool="tool", id=b"2", raw=RAW)
        assert await workers.shape(job) == pipeline.shape(job)
    finally:
        workers.close()


async def test_a_process_goes_on_where_its_whole_group_is_told_to_end(workers: Workers) -> None:
    there = told(await workers.shape(doing("be told to end")))

    assert there["group"] != os.getpgid(0)
    assert told(await workers.shape(doing("tell"))) == there


async def test_what_a_step_prints_is_no_part_of_the_answer(
    workers: Workers, capfd: pytest.CaptureFixture[str]
) -> None:
    assert told(await workers.shape(doing("print")))["process"] != os.getpid()
    assert capfd.readouterr() == ("", "not a message\nnor is this\n")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed on Linux")
async def test_nothing_is_left_once_they_are_closed() -> None:
    workers = Workers(processes=2)
    before = os.listdir("/proc/self/fd")
    processes = {
        told(outcome)["process"]
        for outcome in await asyncio.gather(*[workers.shape(doing("tell")) for _ in range(4)])
    }
    await workers.shape(doing("die"))
    workers.close()
    workers.close()

    assert all(map(gone, processes))
    assert os.listdir("/proc/self/fd") == before
    assert told(await workers.shape(doing("tell")))["process"] == os.getpid()


async def test_what_a_rule_out_of_service_is_for_is_not_sent_anywhere(workers: Workers) -> None:
    outcome = await workers.shape(replace(doing("hang", "nowhere"), bypass=True))
    assert (outcome.raw is RAW, outcome.outcome, outcome.log_line) == (True, "failed", None)


async def test_what_is_being_shaped_when_they_are_closed_goes_out_as_it_came(
    tmp_path: Path,
) -> None:
    workers = Workers(processes=1)
    started = tmp_path / "started"
    jobs = [asyncio.create_task(workers.shape(doing("hang", str(started)))) for _ in range(2)]
    await asyncio.to_thread(until, lambda: started.exists() and bool(started.read_text()))
    workers.close()
    outcomes = await asyncio.gather(*jobs)

    assert [outcome.raw is RAW for outcome in outcomes] == [True, True]
    assert [outcome.log_line for outcome in outcomes] == [
        "rule: tool: failed at the worker process: it ended by signal 9",
        "rule: tool: failed at the start of a worker process: the proxy is ending",
    ]
    assert [outcome.blameless for outcome in outcomes] == [False, True]
    assert gone(int(started.read_text()))


KILLED = """
import asyncio, sys
from tests.transports.workers.test_pool import Workers, doing, told

async def main():
    workers = Workers(processes=2)
    busy = asyncio.create_task(workers.shape(doing("hang", sys.argv[1])))
    print(told(await workers.shape(doing("tell")))["process"], flush=True)
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
        assert not gone(idle)
        assert not gone(busy)
        parent.kill()
    try:
        until(lambda: gone(idle) and gone(busy))
    finally:
        with suppress(ProcessLookupError):
            os.kill(busy, signal.SIGKILL)
