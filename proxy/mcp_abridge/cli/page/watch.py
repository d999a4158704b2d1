"""`replay --watch`: the page over loopback, which follows the rule files and the recordings.

Invariant: only the browser that was given the address is answered: it has a random token in it,
and requests of other hosts and origins are refused.
"""

import argparse
import asyncio
import hmac
import logging
import os
import secrets
import time
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from glob import escape, glob
from itertools import chain
from threading import Lock
from typing import Any

from aiohttp import web

from mcp_abridge.cli import options
from mcp_abridge.cli.page import calls as calls_page
from mcp_abridge.cli.page import data, write
from mcp_abridge.cli.page.calls import RecordedCalls, Rows, with_uses
from mcp_abridge.cli.terminal import print_lines, progress, refuse, say
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import AbridgeError
from mcp_abridge.replay.recordings import NO_CALL
from mcp_abridge.ruleset.selection import Selection
from mcp_abridge.ruleset.watch import Stamp, stamp, stamps

_NEW_CALLS = 1.0  # seconds at least between two readings of recordings


class LiveCalls:
    """The recordings and rules as they are now, and the figures of the list, once known."""

    def __init__(self, arguments: argparse.Namespace, read: Callable[[], RecordedCalls]) -> None:
        self._arguments, self._read = arguments, read
        self.version = 0
        self.mistakes: list[str] = []
        self.selection = Selection((), "off", lambda _: None)
        self._stamps: Any = None  # of the rules that were read
        self._moving: Any = None  # as they were at the last look
        self.load_rules()
        self.calls = read()
        self._times = _modified(arguments.paths)
        self._next = 0.0  # when recordings are looked at again
        self._figures: dict[tuple[int, int], Rows] = {}
        self._busy = Lock()

    def load_rules(self) -> None:
        """Read the rules; if they have mistakes, the ones before stay."""
        self._stamps = stamps(self._arguments.rules or ())
        try:
            self.selection, self.mistakes = options.selection(self._arguments), []
        except (AbridgeError, OSError) as error:
            self.mistakes = list(map(str, getattr(error, "problems", [error])))

    def look(self) -> None:
        """Follow the files: the page may show something else then, which is another version."""
        changed = False
        now = stamps(self._arguments.rules or ())
        # An editor empties a file before it writes it: the rules are read once they stand still.
        if now != self._stamps and now == self._moving:
            self.load_rules()
            changed = True
        self._moving = now
        start = time.monotonic()
        if start >= self._next:
            times = _modified(self._arguments.paths)
            if times != self._times:
                self._times, self.calls = times, self._read()
                changed = True
            # Many calls take a while to read: while they are recorded, most time is for others.
            self._next = time.monotonic() + max(_NEW_CALLS, 4 * (time.monotonic() - start))
        if changed:
            self.version += 1
            self._figures.clear()

    def name(self, client: int) -> str | None:
        return list(self.calls.clients.values())[client]

    def figures(self, client: int) -> Rows | None:
        """Return the figures of all calls for a client; None once there is a newer version."""
        version, calls = self.version, self.calls
        key = version, client
        with self._busy:
            if key in self._figures:
                return self._figures[key]
            rows: Rows = []
            for each in calls.figures(self.selection, self.name(client)):
                rows.append(each)
                if version != self.version:
                    return None
            self._figures[key] = rows
            return rows

    def answer(self, number: int, client: int) -> dict[str, Any]:
        """Return one call for a client, while figures are being worked on."""
        answer = self.calls.answer(self.selection, number, self.name(client))
        rows = self._figures.get((self.version, client))
        return with_uses(answer, rows[number] if rows else None)


def serve(arguments: argparse.Namespace, read: Callable[[], RecordedCalls]) -> int:
    """Serve the page on loopback until the user ends the command. Raises OSError."""
    live = LiveCalls(arguments, read)
    if not live.calls.calls:
        return refuse("replay", NO_CALL.format(", ".join(arguments.paths)))
    if arguments.html is not None:
        write("replay", arguments.html, calls_page.page(live.calls, live.selection, progress))
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(PageServer(live), open_browser=arguments.open))
    return 0


async def _serve(server: "PageServer", *, open_browser: bool) -> None:
    # Without a handler, malformed HTTP of any program here would be a traceback on the terminal.
    logging.getLogger("aiohttp").addHandler(logging.NullHandler())
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        print_lines(server.address)
        say("replay", "the page follows the rules and recordings; Ctrl+C ends it")
        if open_browser:
            await asyncio.to_thread(webbrowser.open, server.address_for_once())
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


class PageServer:
    """The requests of the page: itself, one call, figures, and the version of the files."""

    def __init__(self, calls: LiveCalls) -> None:
        self._live = calls
        self._token = secrets.token_urlsafe(24)
        self._once = ""  # a token that leads to the other one, until it has
        self._looking = asyncio.Lock()
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self._token}/"

    def address_for_once(self) -> str:
        """Return an address that leads to the page once: all can see the words of a browser."""
        self._once = secrets.token_urlsafe(24)
        return f"http://127.0.0.1:{self.port}/{self._once}/"

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._check])
        application.add_routes(
            [
                web.get("/{token}/", self._page),
                web.get("/{token}/call/{number:[0-9]+}", self._call),
                web.get("/{token}/figures", self._figures),
                web.get("/{token}/version", self._version),
            ]
        )
        return application

    @web.middleware
    async def _check(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse who has not got the address from this command, or asks from another page."""
        own = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        origin = request.headers.get("Origin")
        token = request.match_info.get("token", "")
        if request.host not in own or (origin and origin.removeprefix("http://") not in own):
            raise web.HTTPForbidden(text="this address is for the browser of this machine alone\n")
        if self._once and hmac.compare_digest(token.encode(), self._once.encode()):
            self._once = ""
            raise web.HTTPSeeOther(self.address)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            raise web.HTTPNotFound(text="the address is the whole line that replay has printed\n")
        response = await handler(request)
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    async def _page(self, _: web.Request) -> web.Response:
        calls = self._live.calls
        head = {**calls.head(), "figures": [], "live": True}
        html = calls_page.render_calls(data("calls-data", head), calls, live=True)
        return web.Response(text=html, content_type="text/html")

    async def _call(self, request: web.Request) -> web.Response:
        number, client = int(request.match_info["number"]), _client(request)
        try:
            answer = await asyncio.to_thread(self._live.answer, number, client)
        except LookupError:
            raise web.HTTPNotFound(text="there is no such call any more\n") from None
        except AbridgeError as error:
            raise web.HTTPConflict(text=f"{error}\n") from None
        return _json(answer)

    async def _figures(self, request: web.Request) -> web.Response:
        rows = await asyncio.to_thread(self._live.figures, _client(request))
        if rows is None:
            return _json({"stale": True})
        calls = self._live.calls.head()["calls"]
        return _json({"calls": calls, "figures": [each and each.row for each in rows]})

    async def _version(self, _: web.Request) -> web.Response:
        async with self._looking:
            await asyncio.to_thread(self._live.look)
        return _json({"version": self._live.version, "mistakes": self._live.mistakes})


def _modified(paths: list[str]) -> dict[str, Stamp]:
    """Return the stamps of recordings, and of their folders, which change with a new file."""
    folders = (os.path.join(escape(path), "**") for path in paths)
    inner = chain.from_iterable(glob(each, recursive=True, include_hidden=True) for each in folders)
    return {each: stamp(each) for each in (*paths, *inner)}


def _client(request: web.Request) -> int:
    number = request.query.get("client", "0")
    if not number.isdecimal() or int(number) >= len(calls_page.CLIENTS) + 1:
        raise web.HTTPBadRequest(text="client is the number of a choice of the page\n")
    return int(number)


def _json(value: dict[str, Any]) -> web.Response:
    return web.Response(body=encode(value), content_type="application/json")
