"""A page of a shop on loopback, for servers that drive a browser: links, buttons, texts, rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

NAVIGATION = "".join(f'<li><a href="/c/{n}">Category {n}</a></li>' for n in range(12))
CARD = """<article><h3><a href="/item/{n}?ref=list&amp;utm_source=shop&amp;utm_medium=grid&amp;session={s}">Lamp {n}</a>
</h3><div><div><img src="/i/{n}.png" alt="Picture of lamp {n}"><div><span>4.5</span> <span>({n} reviews)</span></div></div>
</div><p>A lamp for the desk, the shelf and the night. It has a switch, a cable of two metres and a bulb of {n} watts.</p>
<div><span>EUR</span> <span>{n}.90</span> <button onclick="document.title='Bought {n}'">Add to cart</button>
<button aria-label="Save lamp {n}"></button></div></article>"""
ROW = '<tr><td>{n}</td><td><a href="/order/{n}">Order {n}</a></td><td>2026-01-11</td><td>shipped</td></tr>'
PAGE = """<!doctype html><html lang="en"><title>Lamps</title><link rel="icon" href="data:,"><body><header><nav><ul>
{navigation}</ul></nav><form><label>Search <input name="q" placeholder="Search lamps"></label><button>Go</button></form>
</header><main><h1>Lamps</h1><select aria-label="Sort"><option>Price</option><option>Name</option></select>{cards}
<h2>Orders</h2><table>{rows}</table></main><footer>Imprint</footer>
<script>console.error("boom");for (let n = 0; n < 60; n++) console.log("message " + n)</script></body></html>"""


def page(cards: int, rows: int) -> str:
    """Return the page with this many articles and rows of its table."""
    return PAGE.format(
        navigation=NAVIGATION,
        cards="".join(CARD.format(n=n, s="0123456789abcdef" * 6) for n in range(cards)),
        rows="".join(ROW.format(n=n) for n in range(rows)),
    )


@contextmanager
def shop(cards: int = 60, rows: int = 40) -> Iterator[str]:
    """Serve the page at any path, and yield its address."""
    html = page(cards, rows).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"" if self.path.startswith("/i/") else html
            self.send_response(200)
            self.send_header("Content-Type", "image/png" if not body else "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
