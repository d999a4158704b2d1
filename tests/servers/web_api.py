"""A web API on loopback that gives fixed answers, for servers that are told where theirs is."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.raw_http import Asked, RawServer, whole


@contextmanager
def web_api(answers: Mapping[str, Any] | Callable[[str], Any]) -> Iterator[str]:
    """Answer each `METHOD /path` of `answers` with its JSON, all else with 404; yield the URL.

    If `answers` is a function, it gets `METHOD /path?query`; bytes are a page of HTML.
    """

    def answer(asked: Asked) -> Iterator[bytes]:
        line = f"{asked.method} {asked.path}"
        body = answers(line) if callable(answers) else answers.get(line.partition("?")[0])
        if isinstance(body, bytes):
            yield whole(body, "200 OK", "Content-Type: text/html; charset=utf-8")
        elif body is None:
            yield whole(b'{"error": "Not found"}', "404 Not Found")
        else:
            yield whole(json.dumps(body).encode())

    with RawServer(answer) as server:
        yield server.url.removesuffix("/mcp")
