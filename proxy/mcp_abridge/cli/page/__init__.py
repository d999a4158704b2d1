"""The page of `report`, `replay` and `explain --html`: one file that opens without a network.

sums     what servers sent and models read, by tool and so on: the page of `report`
calls    recorded calls, with what a model reads of each answer: the page of the other two
answer   one answer: its tree, the marks of what is shown, and the steps of its rule
watch    the page over a loopback server, which follows rules and recordings

Invariant: what servers and ledgers say is escaped, and the page may load nothing and send nothing:
its Content-Security-Policy allows the one style and the scripts by their hashes, and with `--watch`
requests to its own server. Data stand in elements that no browser runs.
"""

import hashlib
import os
import stat
from base64 import b64encode
from html import escape
from pathlib import Path
from string import Template

from mcp_abridge.cli.terminal import put, say
from mcp_abridge.document.tree import encode
from mcp_abridge.storage.regular import write_private

# The copied files are those of the npm package that tests/servers/browser.json pins.
_STYLES = ("uplot/uPlot.min.css", "page.css", "calls.css")
_SCRIPTS = ("uplot/uPlot.iife.min.js", "page.js", "calls.js")


def render(title: str, subtitle: str, main: str, *, live: bool = False) -> str:
    """Return a page as HTML; if it is `live`, it may connect to the server that it came from."""
    style = "".join(map(own_file, _STYLES))
    script = f"/*!\n{own_file('uplot/LICENSE')}\n*/\n" + "".join(map(own_file, _SCRIPTS))
    return Template(own_file("page.html")).substitute(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        connect=" connect-src 'self';" if live else "",
        title=escape(title),
        subtitle=escape(subtitle),
        main=main,
    )


def data(name: str, value: object) -> str:
    """Return an element with a value as JSON, which a script of the page reads by its name.

    >>> data("call-1", "</script>")
    '<script type="application/json" id="call-1">"\\\\u003c/script>"</script>'
    """
    json = encode(value).replace(b"<", rb"\u003c").decode()
    return f'<script type="application/json" id="{name}">{json}</script>'


def write(verb: str, path: str, html: str, note: str = "; open it in a browser") -> None:
    """Write a page that its owner alone can read, whoever could before; `-` is stdout. OSError."""
    if path == "-":
        put(html)
        return
    if os.path.isfile(path):
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    write_private(path, html.encode())
    say(verb, f"wrote {path}{note}")


def own_file(name: str) -> str:
    """Return the text of a file in this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
