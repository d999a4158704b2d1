"""Has rule files read again in a thread, since a long one takes a second or more.

The request that finds them changed waits for that; others go on by the old rules meanwhile.
"""

import asyncio

from proxy.ruleset.rule import RuleFile
from proxy.ruleset.watch import Watch
from proxy.transports.aio import threaded


class Reloading:
    """The files of a Watch, for a `ruleset.Selection`, which asks without waiting."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._reading: asyncio.Future[None] | None = None

    @property
    def files(self) -> tuple[RuleFile, ...]:
        """The rules, as the files last held them without a mistake."""
        return self._watch.files

    def look(self) -> None:
        """Do nothing: whoever has time to wait calls `settled`."""

    async def settled(self) -> None:
        """See whether the files have changed, and wait until they are read where they have."""
        if self._reading is not None or not self._watch.changed():
            return
        self._reading = asyncio.ensure_future(threaded(self._watch.read))
        self._reading.add_done_callback(self._over)
        # Whoever goes away meanwhile, it is for all.
        await asyncio.shield(self._reading)

    def _over(self, reading: "asyncio.Future[None]") -> None:
        self._reading = None


async def unchanging() -> None:
    """Do nothing: what `settled` is to a route whose rules stay as they are."""
