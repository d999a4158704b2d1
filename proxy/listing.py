"""What a client was last told of the server's tools, to know if other rules would change it."""

from collections.abc import Callable
from weakref import WeakValueDictionary

from msgspec import Raw

from proxy.errors import DocumentError

Rewrite = Callable[[Raw], Raw | None]

_MOST = 4 << 20  # bytes of one page; what is longer counts as changed by whatever rules


class Page:
    """One result of tools/list as the server gave it; sessions share those that are the same."""

    def __init__(self, result: bytes) -> None:
        self.result = result


_PAGES: WeakValueDictionary[bytes, Page] = WeakValueDictionary()


class Listing:
    """The pages of the last tools/list, and what the client got of each."""

    CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    """What tells a client that it is to ask again (MCP: Tools, List Changed Notification)."""

    def __init__(self) -> None:
        self._pages: list[tuple[Page | None, bytes]] = []

    def told(self, result: Raw, given: Raw | None, *, further: bool) -> None:
        """Take a page that was passed on, as `given` or, where that is None, as it came.

        `further` is true where it follows the one before.
        """
        if not further:
            self._pages.clear()
        raw = bytes(result)
        page = None
        if len(raw) <= _MOST:
            page = _PAGES.setdefault(_digest(raw), Page(raw))
        self._pages.append((page, _digest(raw if given is None else bytes(given))))

    def differs(self, rewrite: Rewrite) -> bool:
        """Say whether the client would be told anything else now, where `rewrite` gives it."""
        return any(page is None or _now(page, rewrite) != given for page, given in self._pages)


def _now(page: Page, rewrite: Rewrite) -> bytes:
    try:
        given = rewrite(Raw(page.result))
    except DocumentError:
        given = None
    return _digest(page.result if given is None else bytes(given))


def _digest(raw: bytes) -> bytes:
    # Worth its import only where a server declares that its list may change.
    from hashlib import sha256

    return sha256(raw).digest()
