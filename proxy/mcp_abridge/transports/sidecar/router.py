"""The choice of the route that a path belongs to."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from msgspec import Struct

from mcp_abridge.ruleset.loading.config_model import TOKEN
from mcp_abridge.transports.sidecar.route import Handler, Request, Route

_SEPARATOR = re.compile(r"[/\\]")  # some servers treat them as separators even if escaped


class Mount(Struct, frozen=True):
    """A route and the handler of its requests.

    `earlier` are handlers whose upstream was replaced: their sessions go on.
    """

    route: Route
    handler: Handler
    earlier: tuple[Handler, ...] = ()

    def handler_of(self, request: Request) -> Handler:
        """Return the handler that began the session of a request, else that of all new ones."""
        return next((each for each in self.earlier if each.has_session(request)), self.handler)


Mounts = tuple[Mount, ...]
"""The routes of one listener, as `ranked` orders them."""


def ranked(mounts: Iterable[Mount]) -> Mounts:
    """Return mounts in the order in which they are tried.

    A literal path precedes a path with a token, and both precede a route that takes everything
    under its path; of several such routes the longest path wins.
    """
    return tuple(sorted(mounts, key=_rank))


def find(mounts: Mounts, path: str) -> tuple[Mount, str | None] | None:
    """Return the mount at a request's `path`, if any, and the token that the path holds."""
    segments = [unquote(segment) for segment in path.rstrip("/").split("/")]
    if any(map(_climbs, segments)):
        return None
    for mount in mounts:
        pattern = mount.route.path.rstrip("/").split("/")
        there = segments[: len(pattern)] if mount.route.passes else segments
        if len(there) == len(pattern) and _matches(pattern, there):
            token = there[pattern.index(TOKEN)] if TOKEN in pattern else None
            return mount, token
    return None


def _climbs(segment: str) -> bool:
    """Return True if any server may read a segment as a step up to the parent."""
    return any(part.partition(";")[0] in (".", "..") for part in _SEPARATOR.split(segment))


def _rank(mount: Mount) -> tuple[bool, int, bool]:
    path, passes = mount.route.path, mount.route.passes
    return passes, -len(path.split("/")) if passes else 0, TOKEN in path


def _matches(pattern: Sequence[str], there: Sequence[str]) -> bool:
    return all(
        one == other or (one == TOKEN and other) for one, other in zip(pattern, there, strict=True)
    )
