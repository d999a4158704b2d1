"""Jobs in a thread of their own: one at a time, and one that does not end holds nobody up."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy.transports.workers.thread import ThreadRunner
from tests.threadless import threadless
from tests.transports.workers.doing import SECONDS, doing, failed

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
async def runner() -> ThreadRunner:
    return ThreadRunner()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    return pipe


async def test_the_loop_goes_on_while_a_job_is_done_and_the_next_one_waits(
    runner: ThreadRunner, pipe: Path
) -> None:
    first = asyncio.create_task(runner.shape(doing("read", str(pipe))))
    second = asyncio.create_task(runner.shape(doing("tell")))
    other_end = await asyncio.to_thread(pipe.open, "wb")  # there is one once the first is at it

    assert not first.done()
    assert not second.done()
    other_end.close()
    assert ((await first).outcome, (await second).outcome) == ("shaped", "shaped")


async def test_a_job_that_takes_too_long_is_given_up_and_the_next_one_is_done(pipe: Path) -> None:
    hasty = ThreadRunner(seconds=1.0)
    first = asyncio.create_task(hasty.shape(doing("read", str(pipe))))
    second = asyncio.create_task(hasty.shape(doing("tell")))

    assert failed(await first) == (
        "the worker thread: it took more than 1 seconds; its thread was left alone"
    )
    assert (await second).outcome == "shaped"
    await asyncio.to_thread(pipe.write_bytes, b"go on")


async def test_only_so_many_threads_are_left_alone(tmp_path: Path) -> None:
    hasty = ThreadRunner(seconds=0.1, limit=2)
    pipes = [tmp_path / "a", tmp_path / "b"]
    for pipe in pipes:
        os.mkfifo(pipe)
        reason = failed(await hasty.shape(doing("read", str(pipe))))
        assert reason.endswith("its thread was left alone")

    refusal = await hasty.shape(doing("tell"))
    assert refusal.blameless
    assert failed(refusal) == ("the worker thread: 2 threads are taken up by rules that do not end")
    await asyncio.to_thread(pipes[0].write_bytes, b"go on")
    async with asyncio.timeout(SECONDS):
        while (await hasty.shape(doing("tell"))).outcome != "shaped":
            await asyncio.sleep(0.01)
    await asyncio.to_thread(pipes[1].write_bytes, b"go on")


async def test_where_no_thread_was_to_be_had_the_next_job_is_done_all_the_same(
    runner: ThreadRunner,
) -> None:
    with threadless(), pytest.raises(RuntimeError):
        await runner.shape(doing("tell"))

    async with asyncio.timeout(SECONDS):
        assert (await runner.shape(doing("tell"))).outcome == "shaped"


async def test_what_nobody_waits_for_any_more_is_not_begun(
    runner: ThreadRunner, pipe: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    first = asyncio.create_task(runner.shape(doing("read", str(pipe))))
    second = asyncio.create_task(runner.shape(doing("mark", str(mark))))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.to_thread(pipe.write_bytes, b"go on")

    assert (await first).outcome == "shaped"
    assert (await runner.shape(doing("tell"))).outcome == "shaped"
    assert not mark.exists()


async def test_whatever_a_job_raises_the_thread_goes_on(runner: ThreadRunner) -> None:
    assert "KeyboardInterrupt" in failed(await runner.shape(doing("interrupt")))
    assert (await runner.shape(doing("tell"))).outcome == "shaped"


ENDING = """
import asyncio
from proxy.transports.workers.thread import ThreadRunner
from tests.transports.workers.doing import doing

async def main():
    runner = ThreadRunner(seconds=0.05)
    print((await runner.shape(doing("spin"))).outcome, flush=True)

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
