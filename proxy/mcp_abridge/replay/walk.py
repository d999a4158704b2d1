"""Request every page or window of an answer, one after the other, as a model would."""

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mcp_abridge.document.paths import find
from mcp_abridge.document.tree import Document, plain
from mcp_abridge.errors import AbridgeError
from mcp_abridge.query.call import Call
from mcp_abridge.query.fragment import split
from mcp_abridge.replay import answers
from mcp_abridge.replay.differences import differences, to_json
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session.tools.arguments import VIEW, complete, plan, with_value, without
from mcp_abridge.shaping.steps import run
from mcp_abridge.transforms.paginate import Paginate
from mcp_abridge.transforms.truncate import Truncate

if TYPE_CHECKING:
    from mcp_abridge.replay.play import Replay


def start(rule: Rule, arguments: dict[str, Any], own: Collection[str] = ()) -> dict[str, Any]:
    """Return the arguments of the first call, without offset and view, unless the tool has them."""
    if rule.resources:
        return {**arguments, "uri": split(arguments["uri"])[0]}
    for entry in plan(rule, own).entries:
        if entry.name == VIEW or (entry.steers and entry.schema.get("default") == 0):
            arguments = without(arguments, entry.client_name)
    return arguments


def mismatches(rule: Rule, play: "Replay") -> Iterator[str]:
    """Yield the differences between the joined pages of an answer and the original.

    Raises AbridgeError if a page is an error.
    """
    page_count = 0
    steps = [each for each in rule.snapshot_step.windows if isinstance(each, Paginate | Truncate)]
    for step in steps:
        if not (whole := _parts(rule, step, _whole(rule, play.exchange, step))):
            continue
        length = max(map(len, whole.values()))
        pages = list(_walk(rule, play, step, length))
        page_count = max(page_count, len(pages))
        for path, expected in whole.items():
            parts = [page[path] for page in pages if path in page]
            if isinstance(step, Paginate):
                pages_together: Any = [element for part in parts for element in part]
            else:
                pages_together = "".join(parts[::-1] if step.from_ == "end" else parts)
            yield from differences(expected, pages_together, path or "the document")
    if page_count < 2:
        yield "rejoins: one page holds everything; ask for shorter pages, or give more"


def _parts(rule: Rule, step: Paginate | Truncate, document: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    root = _document(document).root
    for path in step.paths if isinstance(step, Paginate) else (step.at,):
        slot = find(root, path)
        part = None if slot is None else plain(slot.get())
        if isinstance(step, Truncate):
            if isinstance(part, str):
                parts[path.text] = _HINT.sub("", part)
            continue
        if not path.steps and isinstance(part, dict) and step.as_ is not None:
            part = part.get(step.as_)
        if isinstance(part, dict) and any(each.name == "table" for each in rule.pipeline):
            part = [dict(zip(part["columns"], row, strict=True)) for row in part["rows"]]
        if isinstance(part, list):
            parts[path.text] = part
    return parts


_HINT_TEXT = r"<error>Content truncated\. Call with .* to get more\.</error>"
_HINT = re.compile(rf"\A{_HINT_TEXT}\n\n|\n\n{_HINT_TEXT}\Z")


def _walk(
    rule: Rule, play: "Replay", step: Paginate | Truncate, length: int
) -> Iterator[dict[str, Any]]:
    before = answers.located(play.exchange.response, rule)
    first, names = start(rule, play.exchange.arguments), plan(rule, ()).names
    position = names.get(step.names[1], step.names[1])
    answer, offset = play.opening, 0
    while True:
        if answer.failed:
            raise AbridgeError(f"rejoins: the page from {offset} on is an error: {answer.text}")
        page = answers.document(answer, before)
        parts = _parts(rule, step, _parsed(rule, page) if isinstance(step, Paginate) else page)
        yield parts
        size = max(map(len, parts.values()), default=0)
        offset += size
        if not size or offset >= length:
            return
        answer = play.ask(with_value(first, position, offset))


def _whole(rule: Rule, exchange: RecordedExchange, step: Paginate | Truncate) -> Any:
    """Return the document after every step except the windows and the steps that run per page."""
    located = answers.located(exchange.response, rule)
    if located is None:
        raise AbridgeError("rejoins: the result has no document")
    arguments = complete(plan(rule, ()), (), exchange.arguments).arguments
    steps = (each for each in rule.pipeline if not each.window and each.name not in _PER_PAGE)
    rest = replace(rule, pipeline=tuple(steps))
    call = Call(tool=exchange.tool, arguments=arguments, notices=[], missing=[])
    run(rest, located.document, call, slice(None))
    if isinstance(step, Truncate):
        located.document.close()
    return plain(located.document.cell[0])


_PER_PAGE = frozenset(("abridge", "table"))


def _parsed(rule: Rule, page: Any) -> Any:
    document = _document(page)
    call = Call(tool="", notices=[], missing=[])
    for step in rule.pipeline:
        if step.name == "parse":
            step(document.root, call)
    return plain(document.cell[0])


def _document(page: Any) -> Document:
    return Document(page) if isinstance(page, str) else Document.read(to_json(page))
