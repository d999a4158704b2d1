"""The tool list that a client received last, to find out if other rules would change it."""

from collections.abc import Callable
from weakref import WeakValueDictionary

from msgspec import Raw

from proxy.errors import DocumentError

Rewrite = Callable[[Raw], Raw | None]

# Most bytes and pages of one list; a part that is not kept counts as changed by any rules.
_MOST = 4 << 20
_MOST_PAGES = 1000


class Page:
    """One result of tools/list as the server sent it; sessions share equal ones."""

    def __init__(self, result: bytes) -> None:
        self.result = result


_PAGES: WeakValueDictionary[bytes, Page] = WeakValueDictionary()


class ToolListHistory:
    """The pages of the last tools/list, and the client's version of each."""

    CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    """The notification that the list of tools changed (MCP: Tools, List Changed Notification)."""

    def __init__(self) -> None:
        self._pages: list[tuple[Page | None, bytes]] = []
        self._size = 0

    def told(self, result: Raw, given: Raw | None, *, further: bool) -> None:
        """Record a page that was sent as `given`, or unchanged if that is None.

        `further` is true if it follows the previous page.
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
        """Bytes of the list as the server sent it."""
        return self._size

    def differs(self, rewrite: Rewrite) -> bool:
        """Return True if the client would receive another list now, as edited by `rewrite`."""
        pages = list(self._pages)  # pages may be recorded meanwhile
        return any(page is None or _now(page, rewrite) != given for page, given in pages)


def _now(page: Page, rewrite: Rewrite) -> bytes:
    try:
        given = rewrite(Raw(page.result))
    except DocumentError:
        given = None
    return _digest(page.result if given is None else bytes(given))


def _digest(raw: bytes) -> bytes:
    # Imported late: needed only if a server declares that its list may change.
    from hashlib import sha256

    return sha256(raw).digest()
