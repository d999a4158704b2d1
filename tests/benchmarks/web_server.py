"""The server of these benchmarks over HTTP: aiohttp's lightest, and answers from memory, as JSON.

    python -m tests.benchmarks.web_server --port=N [--core=N]

It has one session, which everybody is in.
"""

import asyncio

from aiohttp import web

from tests.benchmarks.server import CHUNK, Answers, on_core, option

HEADERS = {"Mcp-Session-Id": "benchmark", "Content-Type": "application/json"}


async def main() -> None:
    answers = Answers()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        parts = answers.to(await request.content.read())
        if parts is None:
            return web.Response(status=202)
        size = sum(map(len, parts))
        if size <= CHUNK:
            return web.Response(body=b"".join(parts), headers=HEADERS)
        # As in `server`: a long answer is not joined.
        response = web.StreamResponse(headers={**HEADERS, "Content-Length": str(size)})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        await response.write_eof()
        return response

    on_core()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(web.Server(handle), "127.0.0.1", option("port"))
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
