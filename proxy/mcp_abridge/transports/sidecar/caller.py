"""Whose a request is: one caller must never get, run or end what is another's.

A caller is bound to the route and to the name of the token that opened it: its sessions, processes,
streams and stored answers are of that name, so that a token may be replaced by another one of the
name. Without tokens all are one caller. Before a URL the server may tell callers apart by headers
and a query that the proxy passes on: these separate stored answers too, not sessions, which the
server gives. A query identifies nobody: many may have the same.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from aiohttp import web

from mcp_abridge.storage.snapshots import ANYBODY
from mcp_abridge.transports.http.hop_headers import identity
from mcp_abridge.transports.sidecar.route import Route

NO_SESSION = "there is no such session, or none any more"
"""The words for a session that does not exist, and for one of another caller."""


def scope_of(request: web.BaseRequest, route: Route, token: str) -> str:
    """Return the scope of the stored answers of a caller, by a request of it and its token's name.

    Callers that nothing identifies share one scope, and with it the snapshots kept for later pages.
    """
    parts = ["token", token] if token else []
    if not token or route.auth == "forward":
        # Without a token of the route it is the server's, or that of a proxy in front of this one.
        parts += filter(None, [request.headers.get("Authorization")])
    query = ""
    if isinstance(route.upstream, str):
        query = request.rel_url.raw_query_string
        # The server may identify the caller by any header that it receives: a key, a cookie, a
        # user's name.
        parts += identity(request.headers, credentials=route.auth == "forward")
    # Without the address of the listener: replicas listen at different addresses.
    scope = digest("\n".join((route.path, str(route.upstream), query, *parts)))
    return scope if parts else f"{ANYBODY}-{scope}"


def digest(text: str) -> str:
    """Return a digest that stands for a possible secret in all places that others can read."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


class Held(Protocol):
    """A thing that a caller holds: a session, or a process."""

    caller: str


Thing = TypeVar("Thing", bound=Held)


def of_the_largest_holders(
    things: Iterable[Thing], newcomer: str, coming: Iterable[str] = ()
) -> list[Thing]:
    """Return things that may give way for one of the `newcomer`'s, the largest holders' first.

    Nobody gives way to a caller that holds more than they do. `coming` are the callers of things
    that are being started: these are held too.
    """
    things = list(things)
    numbers = Counter([*(each.caller for each in things), *coming])
    there = [each for each in things if numbers[each.caller] >= numbers[newcomer]]
    return sorted(there, key=lambda each: -numbers[each.caller])
