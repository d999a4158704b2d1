"""Rule files that are read again in a thread, while others go on by the old ones."""

import asyncio
import threading
from pathlib import Path

import pytest

from proxy.ruleset.selection import Selection
from proxy.ruleset.watch import Watch
from proxy.transports.sidecar.reload import Reloading

SECONDS = 60.0
ONE = "version: 1\nrules: [{name: one, tools: a}]\n"
TWO = "version: 1\nrules: [{name: number two, tools: a}]\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(ONE)
    return file


def names(selection: Selection) -> list[str]:
    return [rule.name for file in selection(None, None).files for rule in file.rules]


class SlowWatch(Watch):
    """Reads its files once `go` is set."""

    reading = threading.Event()
    go = threading.Event()

    def read(self) -> None:
        self.reading.set()
        assert self.go.wait(SECONDS)
        super().read()


async def test_sessions_use_the_old_rules_until_the_files_are_read(file: Path) -> None:
    watch = SlowWatch([str(file)], print, pytest.fail)
    reloading = Reloading(watch)
    selection = Selection(reloading.files, None, print)
    file.write_text(TWO)
    finding = asyncio.create_task(reloading.refresh())
    assert await asyncio.to_thread(watch.reading.wait, SECONDS)
    await reloading.refresh()

    assert names(selection) == ["one"]
    assert not finding.done()
    # The files are read for all, though who waits for that goes away.
    finding.cancel()
    await asyncio.wait([finding])
    watch.go.set()
    async with asyncio.timeout(SECONDS):
        while names(selection) != ["number two"]:
            await asyncio.sleep(0.01)
