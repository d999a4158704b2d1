"""Jobs in a thread of their own: one at a time, and one that does not end holds nobody up."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from msgspec.structs import replace

from proxy.ruleset.rule import Rule
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transports.workers.thread import ThreadRunner
from tests.given import answer, document, texts
from tests.threadless import threadless
from tests.transports.steps import Step

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60.0
RAW = answer(document({"items": []}))


@pytest.fixture
def apart() -> Iterator[ThreadRunner]:
    made = ThreadRunner()
    yield made
    made.close()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    made = tmp_path / "pipe"
    os.mkfifo(made)
    return made


def doing(deed: str, place: str = "") -> ShapeJob:
    made = Rule(name="rule", tools=("*",), pipeline=(Step(deed, place),), foreign=True)
    return ShapeJob(rule=made, tool="tool", id=b"1", raw=RAW)


def failed(outcome: ShapeResult) -> str:
    """Return why a job failed, which must have cost the answer nothing."""
    assert (outcome.raw, outcome.word) == (RAW, "failed")
    assert outcome.said is not None
    return outcome.said


async def test_a_job_is_done_in_a_thread_that_is_kept(apart: ThreadRunner) -> None:
    outcomes = [await apart.shape(doing("tell")) for _ in range(3)]

    assert all('"thread":"apart"' in texts(outcome.raw)[0] for outcome in outcomes)
    assert [thread.name for thread in threading.enumerate()].count("apart") == 1


async def test_the_loop_goes_on_while_a_job_is_done_and_the_next_one_waits(
    apart: ThreadRunner, pipe: Path
) -> None:
    first = asyncio.create_task(apart.shape(doing("read", str(pipe))))
    second = asyncio.create_task(apart.shape(doing("tell")))
    other_end = await asyncio.to_thread(pipe.open, "wb")  # there is one once the first is at it

    assert not first.done()
    assert not second.done()
    other_end.close()
    assert ((await first).word, (await second).word) == ("shaped", "shaped")


async def test_a_job_that_takes_too_long_is_given_up_and_the_next_one_is_done(pipe: Path) -> None:
    hasty = ThreadRunner(seconds=1.0)
    first = asyncio.create_task(hasty.shape(doing("read", str(pipe))))
    second = asyncio.create_task(hasty.shape(doing("tell")))

    assert failed(await first) == (
        "rule: tool: failed at the worker thread: it took more than 1 seconds; "
        "its thread was left alone"
    )
    assert (await second).word == "shaped"
    await asyncio.to_thread(pipe.write_bytes, b"go on")
    hasty.close()


async def test_only_so_many_threads_are_left_alone(tmp_path: Path) -> None:
    hasty = ThreadRunner(seconds=0.1, most=2)
    pipes = [tmp_path / "a", tmp_path / "b"]
    for pipe in pipes:
        os.mkfifo(pipe)
        said = failed(await hasty.shape(doing("read", str(pipe))))
        assert said.endswith("its thread was left alone")

    assert failed(await hasty.shape(doing("tell"))) == (
        "rule: tool: failed at the worker thread: 2 threads are taken up by rules that do not end"
    )
    await asyncio.to_thread(pipes[0].write_bytes, b"go on")
    async with asyncio.timeout(SECONDS):
        while (await hasty.shape(doing("tell"))).word != "shaped":
            await asyncio.sleep(0.01)
    await asyncio.to_thread(pipes[1].write_bytes, b"go on")
    hasty.close()


async def test_nothing_waits_for_threads_that_may_never_end(tmp_path: Path) -> None:
    hasty = ThreadRunner(seconds=0.05, most=1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    await hasty.shape(doing("read", str(pipe)))
    refused = [await hasty.shape(doing("tell")) for _ in range(3)]

    assert [outcome.blameless for outcome in refused] == [True] * 3
    assert hasty._turns.empty()
    await asyncio.to_thread(pipe.write_bytes, b"go on")
    hasty.close()


async def test_where_no_thread_was_to_be_had_the_next_job_is_done_all_the_same(
    apart: ThreadRunner,
) -> None:
    with threadless(), pytest.raises(RuntimeError):
        await apart.shape(doing("tell"))

    async with asyncio.timeout(SECONDS):
        assert (await apart.shape(doing("tell"))).word == "shaped"


async def test_what_nobody_waits_for_any_more_is_not_begun(
    apart: ThreadRunner, tmp_path: Path
) -> None:
    pipe, mark = tmp_path / "pipe", tmp_path / "mark"
    os.mkfifo(pipe)
    first = asyncio.create_task(apart.shape(doing("read", str(pipe))))
    second = asyncio.create_task(apart.shape(doing("mark", str(mark))))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.to_thread(pipe.write_bytes, b"go on")

    assert (await first).word == "shaped"
    assert (await apart.shape(doing("tell"))).word == "shaped"
    assert not mark.exists()


async def test_one_that_nobody_waits_for_any_more_is_given_up_for_the_next(pipe: Path) -> None:
    hasty = ThreadRunner(seconds=1.0)
    first = asyncio.create_task(hasty.shape(doing("read", str(pipe))))
    other_end = await asyncio.to_thread(pipe.open, "wb")  # there is one once the first is at it
    first.cancel()

    assert (await hasty.shape(doing("tell"))).word == "shaped"
    other_end.close()
    hasty.close()


class Held(dict[str, Any]):
    """Arguments of which one can tell whether somebody holds them."""


async def test_nothing_of_a_job_is_held_once_it_is_done(apart: ThreadRunner) -> None:
    held = Held()
    there = ref(held)
    await apart.shape(replace(doing("tell"), arguments=held))
    del held

    async with asyncio.timeout(SECONDS):
        while there() is not None:
            await asyncio.sleep(0.01)


async def test_whatever_a_job_raises_the_thread_goes_on(apart: ThreadRunner) -> None:
    assert "KeyboardInterrupt" in failed(await apart.shape(doing("interrupt")))
    assert (await apart.shape(doing("tell"))).word == "shaped"


ENDING = """
import asyncio
from tests.transports.workers.test_thread import ThreadRunner, doing

async def main():
    apart = ThreadRunner(seconds=0.05)
    print((await apart.shape(doing("spin"))).word, flush=True)
    apart.close()

asyncio.run(main())
"""


def test_a_job_that_does_not_end_keeps_no_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "failed\n", "")
