"""Read files again while they are served: rules that change, the configuration on SIGHUP.

Both are read in a thread, and if there is a mistake in them, what was read before stays in force.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from mcp_abridge.errors import RuleErrors
from mcp_abridge.ruleset.loading.config_model import LimitsSpec
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.watch import Watch
from mcp_abridge.transports.aio import threaded
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.route import Handler, Mount, Route
from mcp_abridge.transports.sidecar.sidecar import Sidecar

_EARLIER = 3  # upstreams of a route that were replaced, and whose sessions go on


class WatchedRules(Struct, eq=False):
    """The rule files of a Watch, for a `ruleset.selection.Selection`, which must not block."""

    _watch: Watch
    _reading: asyncio.Future[None] | None = None

    def files(self) -> tuple[RuleFile, ...]:
        """The rules of the last version of the files that was valid."""
        return self._watch.files

    async def refresh(self) -> None:
        """Check the files for changes; if there are any, wait until they are read."""
        if (self._reading is None or self._reading.done()) and self._watch.changed():
            self._reading = asyncio.ensure_future(threaded(self._watch.read))
            # The reload continues if this request is cancelled: all requests need it.
            await asyncio.shield(self._reading)


class Configuration(Struct, frozen=True):
    """A configuration as it was read; `unopened` are addresses in it at which nothing listens."""

    routes: tuple[Route, ...]
    store: str | None
    limits: LimitsSpec
    unopened: tuple[str, ...] = ()


class Replacement(Struct, frozen=True):
    """Replaces the configuration of a running sidecar by the one that its file has now.

    `first` is what it began with: a part of it stays. `read` gets the routes that are served, and
    raises AbridgeError; `handler` makes the handler of a new route.
    """

    sidecar: Sidecar
    first: Configuration
    read: Callable[[Sequence[Route]], Configuration]
    handler: Callable[[Route], Handler]
    log: Log

    async def apply(self) -> None:
        """Read the configuration, and serve it if it has no mistake; log what became of it."""
        routes = [mount.route for mount in self.sidecar.mounts]
        try:
            new = await threaded(self.read, routes)
        except Exception as error:  # no mistake in a file may end this for good
            first, *others = error.problems if isinstance(error, RuleErrors) else [error]
            more = f" (and {len(others)} more)" if others else ""
            reason = f"{first}{more}"
            self.log.warning(f"nothing is read again, the old configuration stays: {reason}")
            return
        mounts, changes = self._mounts(new)
        await self.sidecar.replace(mounts)
        for mount in mounts:
            if mount.route.refresh is not None:
                await mount.route.refresh()
        fixed = [f"listen {address}" for address in new.unopened]
        fixed += ["store"] * (new.store != self.first.store)
        fixed += ["limits"] * (new.limits != self.first.limits)
        text = f"the configuration was read again: {'; '.join(changes) or 'no route has changed'}"
        if fixed:
            self.log.warning(f"{text}; only a restart changes: {', '.join(fixed)}")
        else:
            self.log.info(text)

    def _mounts(self, new: Configuration) -> tuple[list[Mount], list[str]]:
        earlier = {(each.route.listen, each.route.path): each for each in self.sidecar.mounts}
        mounts, changes = [], []
        for route in new.routes:
            mount = earlier.pop((route.listen, route.path), None)
            if mount is None:
                mount = Mount(route, self.handler(route))
                changes.append(f"{route.path} is new")
            elif (mount.route.upstream, mount.route.passes) != (route.upstream, route.passes):
                sessions = [each for each in (mount.handler, *mount.earlier) if each.counts()[0]]
                mount = Mount(route, self.handler(route), tuple(sessions[:_EARLIER]))
                changes.append(f"{route.path} has another server, for new sessions")
            elif mount.route.spec != route.spec:
                mount.route.adopt(route)
                changes.append(f"{route.path} has changed")
            mounts.append(mount)
        changes += [f"{path} is gone" for _, path in earlier]
        return mounts, changes
