"""The server of these benchmarks over HTTP: aiohttp's lightest, and answers from memory.

    python -m tests.benchmarks.web_server --port=N [--stream] [--tail] [--core=N]

It has one session, which everybody is in. `--stream` answers as an event stream, else as JSON; the
other options are those of `server`.
"""

import asyncio
import os
import sys

from aiohttp import web

from tests.benchmarks.server import CHUNK, Answers, option

SESSION = {"Mcp-Session-Id": "benchmark"}
JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class Service:
    """Answers each request with what `answers` has for its body."""

    def __init__(self, answers: Answers, streams: bool) -> None:
        self.answers = answers
        self.streams = streams

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        parts = self.answers.to(await request.content.read())
        if parts is None:
            return web.Response(status=202)
        kind = STREAM if self.streams else JSON
        pieces = framed(parts) if self.streams else whole(parts)
        size = sum(map(len, pieces))
        if size <= CHUNK and not self.streams:
            return web.Response(body=b"".join(pieces), headers=kind | SESSION)
        length = {} if self.streams else {"Content-Length": str(size)}
        response = web.StreamResponse(headers=kind | SESSION | length)
        await response.prepare(request)
        # As in `server`: a long answer is not joined.
        if size <= CHUNK:
            pieces = [b"".join(pieces)]
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response


def whole(parts: tuple[bytes, bytes, bytes]) -> list[bytes | memoryview]:
    return [*parts[:2], memoryview(parts[2])[:-1]]


def framed(parts: tuple[bytes, bytes, bytes]) -> list[bytes | memoryview]:
    return [b"event: message\ndata: ", *whole(parts), b"\n\n"]


async def serve(service: Service, port: int) -> None:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(web.Server(service.handle), "127.0.0.1", port)
    await listening.serve_forever()


def main() -> None:
    answers = Answers(tail="--tail" in sys.argv)
    core, port = option("core"), option("port")
    if core is not None:
        os.sched_setaffinity(0, {core})
    if port is None:
        sys.exit(__doc__)
    asyncio.run(serve(Service(answers, "--stream" in sys.argv), port))


if __name__ == "__main__":
    main()
