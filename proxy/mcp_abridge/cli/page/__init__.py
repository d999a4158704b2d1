"""The pages of `report`, `replay` and `explain --html`: files that open without a network.

sums     what servers sent and models read, by tool and so on, for `report`
calls    recorded calls, with what a model reads of each answer, for `replay` and `explain`
answer   one answer: its tree, the marks of what is shown, and the steps of its rule
watch    the page over a loopback server, which follows rules and recordings

Invariant: what servers and ledgers say is escaped, and the page may load nothing and send nothing:
its Content-Security-Policy allows the one style and the script by their hashes, and with `--watch`
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

_HERE = Path(__file__).parent


def render(title: str, subtitle: str, html: str, *, live: bool = False) -> str:
    """Return a whole page; if it is `live`, it may connect to the server that it came from."""
    style, script = _file("page.css") + _file("calls.css"), _file("calls.js")
    return Template(_file("page.html")).substitute(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        connect=" connect-src 'self';" if live else "",
        title=escape(title),
        subtitle=escape(subtitle),
        main=html,
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


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
