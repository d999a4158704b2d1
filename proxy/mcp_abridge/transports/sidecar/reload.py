"""Reload changed rule files in a thread; the request that finds a change waits for it."""

import asyncio

from mcp_abridge.ruleset.rule import RuleFile
from mcp_abridge.ruleset.watch import Watch
from mcp_abridge.transports.aio import threaded


class Reloading:
    """The files of a Watch, for a `ruleset.selection.Selection`, which must not block."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._reading: asyncio.Future[None] | None = None

    def files(self) -> tuple[RuleFile, ...]:
        """The rules of the last version of the files that was valid."""
        return self._watch.files

    async def refresh(self) -> None:
        """Check the files for changes; if there are any, wait until they are read."""
        if (self._reading is None or self._reading.done()) and self._watch.changed():
            self._reading = asyncio.ensure_future(threaded(self._watch.read))
            # The reload continues if this request is cancelled: all requests need it.
            await asyncio.shield(self._reading)
