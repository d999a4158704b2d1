"""What a client was last told of the server's tools, to know if other rules would change it."""

from collections.abc import Callable
from weakref import WeakValueDictionary

from msgspec import Raw

from proxy.errors import DocumentError

Rewrite = Callable[[Raw], Raw | None]

# Bytes and pages of one list; what is not kept of it counts as changed by whatever rules.
_MOST = 4 << 20
_MOST_PAGES = 1000


class Page:
    """One result of tools/list as the server gave it; sessions share those that are the same."""

    def __init__(self, result: bytes) -> None:
        self.result = result


_PAGES: WeakValueDictionary[bytes, Page] = WeakValueDictionary()


class ToolListHistory:
    """The pages of the last tools/list, and what the client got of each."""

    CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    """What tells a client that it is to ask again (MCP: Tools, List Changed Notification)."""

    def __init__(self) -> None:
        self._pages: list[tuple[Page | None, bytes]] = []
        self._size = 0

    def told(self, result: Raw, given: Raw | None, *, further: bool) -> None:
        """Take a page that was passed on, as `given` or, where that is None, as it came.

        `further` is true where it follows the one before.
        """
        if not further:
            self._pages.clear()
            self._size = 0
        raw = bytes(result)
        page = _PAGES.setdefault(_digest(raw), Page(raw)) if len(raw) <= _MOST else None
        entry = page, _digest(raw if given is None else bytes(given))
        if entry in self._pages:
            return
        self._size += len(raw)
        if len(self._pages) == _MOST_PAGES or self._size > _MOST:
            entry = None, b""
        if entry not in self._pages:
            del self._pages[_MOST_PAGES - 1 :]
            self._pages.append(entry)

    @property
    def size(self) -> int:
        """Bytes of the list as the server gave it."""
        return self._size

    def differs(self, rewrite: Rewrite) -> bool:
        """Return True if the client would be told anything else now, where `rewrite` gives it."""
        pages = list(self._pages)  # others may be told meanwhile
        return any(page is None or _now(page, rewrite) != given for page, given in pages)


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
