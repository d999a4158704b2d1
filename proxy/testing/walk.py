"""Request every page or window of an answer, one after the other, as a model would.

The walk uses only the contents of each answer. All answers together must give the document to
which every step of the rule except its windows was applied.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from proxy.document.paths import Path, find
from proxy.document.tree import Document, plain
from proxy.errors import AbridgeError
from proxy.ruleset.rule import Rule
from proxy.session.tools import arguments as argument
from proxy.session.tools.arguments import VIEW, plan
from proxy.shaping.steps import run
from proxy.testing import answer as answers
from proxy.testing.answer import ClientView
from proxy.testing.differences import differences, to_json
from proxy.testing.exchange import RecordedExchange
from proxy.transforms.base import Call
from proxy.transforms.paginate import Paginate
from proxy.transforms.truncate import Truncate

MAX_PAGES = 10_000

Ask = Callable[[dict[str, Any]], ClientView]


def start(rule: Rule, arguments: dict[str, Any], own: Collection[str] = ()) -> dict[str, Any]:
    """Return the arguments of the first call that precedes `arguments`: no offset, no view.

    `own` are the arguments that the tool itself has.
    """
    for entry in plan(rule, own).entries:
        if entry.name == VIEW or (entry.steers and entry.schema.get("default") == 0):
            arguments = argument.without(arguments, entry.client_name)
    return arguments


def mismatches(
    rule: Rule, exchange: RecordedExchange, opening: ClientView, ask: Ask
) -> Iterator[str]:
    """Yield the differences between the joined pages and the original.

    `opening` is the first page of the answer to `exchange`; `ask` gets the others. Raises
    AbridgeError if an answer does not say how to continue.
    """
    page_count = 0
    for track in _tracks(rule):
        whole = _whole(rule, exchange, track)
        expected = {path: track.part(whole, path) for path in track.paths}
        expected = {path: value for path, value in expected.items() if value is not None}
        if not expected:
            continue
        pages = list(_walk(rule, exchange, track, opening, ask))
        page_count = max(page_count, len(pages))
        for path, value in expected.items():
            parts = [part for page in pages if (part := track.part(page, path)) is not None]
            yield from differences(value, track.join(parts), str(path) or "the document")
    if page_count < 2:
        yield "rejoins: one page holds everything; ask for shorter pages, or give more"


def _tracks(rule: Rule) -> "Iterator[Track]":
    tabled = any(step.name == "table" for step in rule.pipeline)
    for step in rule.snapshot_step.windows:
        position = next(
            name for name, each in step.parameters.items() if each.schema.get("default") == 0
        )
        if isinstance(step, Paginate):
            yield Pages(step.paths, position, step, tabled)
        elif isinstance(step, Truncate):
            yield Windows((step.at,), position, step)


class Pages(Struct, frozen=True):
    """The way to follow the pages of `paginate`.

    `paths` are those of the paged arrays, and `position` is the argument that sets the start of a
    page. If `parsed`, the texts of a page are parsed as the rule parses them.
    """

    paths: tuple[Path, ...]
    position: str
    step: Paginate
    tabled: bool
    parsed: bool = True

    def part(self, page: Any, path: Path) -> list[Any] | None:
        """Return the elements of the array at `path` of a page, or of the whole document."""
        value = _at(page, path)
        if not path.steps and isinstance(value, dict) and self.step.as_ is not None:
            value = value.get(self.step.as_)
        if self.tabled and isinstance(value, dict):
            value = _rows(value)
        return value if isinstance(value, list) else None

    def following(self, page: Any, answer: ClientView) -> int | None:
        """Return `nextOffset`, under the name that the rule gives it; None after the last page."""
        offsets = [each for path in self.paths for each in self._offsets(page, path, answer)]
        if not offsets:
            raise AbridgeError("rejoins: a page does not say what follows")
        return min((each for each in offsets if each is not None), default=None)

    def join(self, parts: list[Any]) -> list[Any]:
        """Return the elements in one list."""
        return [element for part in parts for element in part]

    def _offsets(self, page: Any, path: Path, answer: ClientView) -> Iterator[int | None]:
        paths = {word: name for name, word in (self.step.page_info or {}).items()}
        if paths and "nextOffset" not in paths:
            raise AbridgeError("rejoins: page_info has no nextOffset, so no page says what follows")
        for holder in _holders(page, path, answer):
            if paths:
                yield _position(_at(holder, Path.parse(paths["nextOffset"])))
                continue
            notice = _notice(holder, "pagination")
            # Arrays in the same object have an entry each.
            notice = notice.get(path.text.rpartition(".")[2], notice)
            if "nextOffset" in notice:
                yield _position(notice["nextOffset"])


class Windows(Struct, frozen=True):
    """The way to follow the windows of `truncate`, as Pages."""

    paths: tuple[Path, ...]
    position: str
    step: Truncate
    parsed: bool = False

    def part(self, page: Any, path: Path) -> str | None:
        """Return the text at `path`, without a hint in it."""
        value = _at(page, path)
        return _HINT.sub("", value) if isinstance(value, str) else None

    def following(self, page: Any, answer: ClientView) -> int | None:
        """Return `nextIndex`; a text that is short enough has none."""
        for holder in _holders(page, self.step.at, answer):
            notice = _notice(holder, "truncation")
            if "totalLength" in notice:
                return _position(notice.get("nextIndex"))
        return None

    def join(self, parts: list[Any]) -> str:
        """Return the text in one piece."""
        return "".join(parts[::-1] if self.step.from_ == "end" else parts)


Track = Pages | Windows

_HINT_TEXT = r"<error>Content truncated\. Call with .* to get more\.</error>"
_HINT = re.compile(rf"\A{_HINT_TEXT}\n\n|\n\n{_HINT_TEXT}\Z")


def _walk(
    rule: Rule, exchange: RecordedExchange, track: Track, opening: ClientView, ask: Ask
) -> Iterator[Any]:
    before = answers.located(exchange.response, rule)
    first, names = start(rule, exchange.arguments), plan(rule, ()).names
    answer, offset = opening, 0
    for _ in range(MAX_PAGES):
        if answer.failed:
            raise AbridgeError(f"rejoins: the page from {offset} on is an error: {answer.text}")
        page = answers.document(answer, before)
        page = _parsed(rule, page) if track.parsed else page
        yield page
        following = track.following(page, answer)
        if following is None:
            return
        if following <= offset:
            raise AbridgeError(
                f"rejoins: the page after the one from {offset} on begins at {following}"
            )
        offset = following
        answer = ask(argument.with_value(first, names.get(track.position, track.position), offset))
    raise AbridgeError(f"rejoins: more than {MAX_PAGES} pages; ask for longer ones, or give less")


def _whole(rule: Rule, exchange: RecordedExchange, track: Track) -> Any:
    """Return the document after every step except the windows and the steps that run per page."""
    located = answers.located(exchange.response, rule)
    if located is None:
        raise AbridgeError("rejoins: the result has no document")
    arguments = argument.complete(plan(rule, ()), (), exchange.arguments).arguments
    steps = (step for step in rule.pipeline if not step.window and step.name not in _PER_PAGE)
    rest = replace(rule, pipeline=tuple(steps))
    call = Call(tool=exchange.tool, arguments=arguments, notices=[], missing=[])
    run(rest, located.document, call, slice(None))
    if not track.parsed:
        located.document.close()
    return plain(located.document.cell[0])


_PER_PAGE = frozenset(("abridge", "table"))


def _parsed(rule: Rule, page: Any) -> Any:
    """Return a page with its texts parsed as the rule parses them."""
    document = _document(page)
    call = Call(tool="", notices=[], missing=[])
    for step in rule.pipeline:
        if step.name == "parse":
            step(document.root, call)
    return plain(document.cell[0])


def _document(page: Any) -> Document:
    return Document(page) if isinstance(page, str) else Document.read(to_json(page))


def _at(page: Any, path: Path) -> Any:
    slot = find(_document(page).root, path)
    return None if slot is None else plain(slot.get())


def _rows(table: dict[str, Any]) -> list[Any] | None:
    try:
        return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    except (KeyError, TypeError, ValueError):
        return None


def _holders(page: Any, path: Path, answer: ClientView) -> Iterator[dict[str, Any]]:
    """Yield the objects that may hold the next position: the array's parent, else the notices."""
    holder = _at(page, Path("", path.steps[:-1]))
    if isinstance(holder, dict):
        yield holder
        return
    for text in answer.texts:
        value = answers.value(text)
        if isinstance(value, dict):
            yield value


def _notice(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object at `name`, or at `name_` if the upstream uses `name`; else `holder`."""
    notice = holder
    while isinstance(holder.get(name), dict):
        notice, name = holder[name], f"{name}_"
    return notice


def _position(value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    raise AbridgeError(f"rejoins: {value!r} is no position")
