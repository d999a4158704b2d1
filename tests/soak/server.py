"""A server of the soak, over stdio or, with `--http PORT`, over HTTP.

    python -m tests.soak.server [--http PORT]

Now and then it says what is no message, and it never answers `never`: over HTTP such a request ends
with its connection.
"""

import asyncio
import os
import sys
from itertools import count

from tests.soak import answers

NOISY = 100  # requests between two noises
CHUNK = 1 << 16


def speak() -> None:
    begun = b""
    for number in count(1):
        chunk = os.read(0, CHUNK)
        if not chunk:
            return
        *lines, begun = (begun + chunk).split(b"\n")
        said: list[bytes] = []
        for line in lines:
            asked = answers.read(line)
            answer = answers.answer(asked)
            said += answers.before(asked)
            said += [] if answer is None else [answer]
        if number % NOISY == 0:
            said.append(b"Server: 12% of something done")
            os.write(2, b"warning: nothing is wrong\n")
        say(b"".join(line + b"\n" for line in said))


def say(raw: bytes) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(1, rest) :]


async def serve(port: int) -> None:
    """Serve over HTTP: sessions of which each has an id of its own, JSON and event streams."""
    from aiohttp import web

    numbers, endless = count(1), asyncio.Event()
    stream = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}

    async def listened(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers=stream)
        await response.prepare(request)
        await response.write(b": hello\n\n")
        await endless.wait()
        return response

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return await listened(request)
        if request.method == "DELETE":
            return web.Response(status=200)
        asked, number = answers.read(await request.read()), next(numbers)
        own = {"Mcp-Session-Id": f"soak-{number}"} if asked.method == "initialize" else {}
        if not asked.id:
            return web.Response(status=202)
        answer, first = answers.answer(asked), answers.before(asked)
        if answer is None:
            await endless.wait()
        assert answer is not None
        if not first and number % 3:
            return web.Response(body=answer, headers={"Content-Type": "application/json", **own})
        response = web.StreamResponse(headers=stream | own)
        await response.prepare(request)
        await response.write(b": noise\n\n" * (number % NOISY == 0))
        for each in (*first, answer):
            await response.write(b"event: message\ndata: " + each + b"\n\n")
        await response.write_eof()
        return response

    server = web.Server(handle, handler_cancellation=True)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", port)
    await listening.serve_forever()


def main() -> None:
    if sys.argv[1:2] == ["--http"]:
        asyncio.run(serve(int(sys.argv[2])))
    else:
        speak()


if __name__ == "__main__":
    main()
