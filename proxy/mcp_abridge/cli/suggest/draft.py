"""Drafts the steps of a rule for a tool from its recorded answers, with the evidence for each."""

import re
from typing import Any

from msgspec import UNSET, Raw, Struct

from mcp_abridge.cli.suggest.profile import MemberProfile, User
from mcp_abridge.cli.terminal import short_list
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.gather import values_at
from mcp_abridge.document.paths import Name
from mcp_abridge.document.tree import Document, encode, plain
from mcp_abridge.replay.exchanges import RecordedExchange
from mcp_abridge.summary import roles
from mcp_abridge.summary.columns import Column, columns_of, names_of
from mcp_abridge.summary.structure_in_text import read_structure

SMALL = 4_000  # bytes; a tool whose largest answer takes no more needs no rule
MAX_BYTES = 4_000  # of an answer, whatever is in it
FIRST_LOOK = 2_000  # bytes of a text, as without a rule
_LEAST_SHARE = 0.02  # of the bytes of all answers: a path with less is left as it is
_MAIN_SHARE = 0.15
_LARGE = 1_000  # bytes of an array, on average
_MANY, _SOME = 50, 10  # elements of a list of ids, and of one beside it
_SHORT = 40  # bytes of a constant
_USUAL = {b"null", b"false", b"0", b'""', b"[]", b"{}"}
FEW = 3  # elements that are shown of an array in a row
_ROWS = 5  # fewer rows say nothing of what is constant
_LONG, CLIP = 400, 200  # characters
_LIMIT = 1_000  # elements of a page, which ends earlier at MAX_BYTES
_PARSED = ("json", "yaml", "python")
_PROSE = re.compile(r"^[^\[{]+(?=[\[{])")
_CURSOR = re.compile(r"(?i)next|cursor|continu|offset|has_?more|page_?(?:info|token)")

DraftStep = dict[str, Any]


class Answered(Struct, frozen=True):
    """An exchange with its document: `value` is of JSON, or a text; `size` as a model sees it.

    `user` returns who used a value of it later; `later`: somebody could have, by a call or a text.
    """

    exchange: RecordedExchange
    value: Any
    size: int
    user: User
    later: bool


class Draft(Struct):
    """The steps of a rule for a tool, each with its reasons.

    `form` says how the answers are read: `value` for JSON, the `as` of the step `parse`, `rows`
    for tables and the like in a text, or `text`. `evidence` and `users` are lines of comments.
    """

    tool: str
    answers: list[Answered]
    form: str = "value"
    evidence: list[str] = []
    reasons: list[list[str]] = []
    steps: list[DraftStep] = []
    users: list[str] = []

    @property
    def largest(self) -> Answered:
        texts = self.form != "value"
        fitting = [each for each in self.answers if isinstance(each.value, str) is texts]
        return max(fitting or self.answers, key=lambda each: each.size)

    def options(self, name: str) -> list[Any]:
        return [step[name] for step in self.steps if name in step]

    def add(self, step: DraftStep, *reasons: str) -> None:
        self.steps.append(step)
        self.reasons.append([*reasons])


def drafted(tool: str, answers: list[Answered]) -> Draft:
    """Return the draft for a tool from its answers."""
    result = Draft(tool, answers)
    texts = [each for each in answers if isinstance(each.value, str)]
    if 2 * sum(each.size for each in texts) > sum(each.size for each in answers):
        result.form = "text"
        _read_texts(result, [each.value for each in texts])
    documents = [(each, each.value) for each in answers if not isinstance(each.value, str)]
    if result.form in _PARSED:
        reading = ((each, structure(each.value)[0]) for each in texts)
        documents += [(each, value) for each, value in reading if value is not None]
    if result.form in ("value", *_PARSED):
        root = MemberProfile()
        for each, value in documents:
            root.add(value, each.user)
        result.evidence += _shares(root)
        _DraftBuilder(result, root).run()
    else:
        lines = ((each, line) for each in texts for line in each.value.splitlines())
        users = (each.user("", line) for each, line in lines)
        result.users += [f"{user} from a line" for user in dict.fromkeys(users) if user]
    return result


def structure(text: str) -> tuple[Any, str, str]:
    """Return the structure in a text, its form and what stands before it."""
    document = Document(text)
    read_structure(document, Fuel())
    if not document.closers:
        return None, "", ""
    frame = document.closers[-1].sources[0][2]
    return plain(document.cell[0]), frame.form, frame.before


def _read_texts(result: Draft, texts: list[str]) -> None:
    options = [_parse_options(text) for text in texts if len(text) > SMALL] or [{}]
    if any(each != options[0] for each in options) or not options[0]:
        longest = max(texts, key=len)
        lines = f"{len(longest.splitlines()):,} lines"
        rows = structure(longest)[1]
        result.form = "rows" if rows and not any(options) else "text"
        kind = f"{rows}, which is shown as rows in brief" if rows else "texts of up to"
        result.evidence.append(f"100 %  {kind} {lines}, {len(longest):,} characters")
        return
    result.form = options[0]["as"]
    result.add({"parse": options[0]}, f"the text is read as {result.form}")


def _parse_options(text: str) -> DraftStep:
    _, form, before = structure(text)
    if form in ("Python", "YAML"):
        return {"as": form.lower()}
    if form == "JSON" and before.endswith("```json\n") and before in text:
        return {"as": "json", "fence": "json"}
    if form == "JSON" and (match := _PROSE.match(text)) and match[0] == before:
        return {"as": "json", "after": _PROSE.pattern.partition("(?=")[0]}
    return {}


def _shares(root: MemberProfile) -> list[str]:
    """Describe the paths with most of the bytes, inner ones in place of those around them."""
    heavy = [node for node in root.walk() if node.names and node.size >= _LEAST_SHARE * root.size]
    around = {each.names[:length] for each in heavy for length in range(len(each.names))}
    leaves = sorted((n for n in heavy if n.names not in around), key=lambda node: -node.size)[:6]
    shares = (round(100 * node.size / root.size) for node in leaves)
    return [f"{n:3} %  {each.path}: {_kind(each)}" for n, each in zip(shares, leaves, strict=True)]


def _kind(node: MemberProfile) -> str:
    if node.lengths:
        few, many, each = min(node.lengths), max(node.lengths), node.inner
        counts = f"{few:,} to {many:,}" if few != many else f"{many:,}"
        inner = (
            "ids" if each.are_ids and str in each.kinds else "texts" if each.longest else "values"
        )
        inner = "arrays" if each.element else "objects" if each.members else inner
        return f"{counts} {inner}{', grows' * (few != many)}"
    if str in node.kinds:
        return f"texts of up to {node.longest:,} characters"
    return f"{len(node.members)} members" if node.members else f"{node.count:,} values"


class _DraftBuilder:
    def __init__(self, result: Draft, root: MemberProfile) -> None:
        self.result, self.root = result, root
        self.drops: dict[str, str] = {}
        self.elides: list[MemberProfile] = []
        self.clips: list[MemberProfile] = []
        self.pages: list[MemberProfile] = []

    def run(self) -> None:
        self._visit(self.root)
        result = self.result
        reasons: dict[str, list[str]] = {}
        for path, reason in self.drops.items():
            reasons.setdefault(reason, []).append(path)
        if self.drops:
            comments = (f"{reason}: {short_list(paths)}" for reason, paths in reasons.items())
            result.add({"drop": list(self.drops)}, *comments)
        for node in self.elides:
            most = f"{node.path}: up to {max(node.lengths):,} elements in a row"
            result.add({"elide": {"at": node.path, "first": FEW}}, most)
        for node in self.clips:
            self._shorten(node)
        if self.pages:
            self._page_arrays()

    def _visit(self, node: MemberProfile) -> None:
        inner = node.inner
        if node.element is not None:
            self._array(node, node.element)
        elif str in node.kinds and node.longest > _LONG and self._heavy(node):
            self.clips.append(node)
        for member in inner.members.values():
            if member.path in self.drops:
                continue
            bookkeeping = self._is_bookkeeping(member, inner)
            if bookkeeping and not member.users:
                self.drops[member.path] = "lists of ids, and no later call used one of them"
                continue
            if bookkeeping or (member.users and not member.members and member.element is None):
                self._keep(member)
            self._visit(member)

    def _keep(self, node: MemberProfile) -> None:
        self.result.users.append(f"{node.path} stays: {next(iter(node.users))}")

    def _heavy(self, node: MemberProfile) -> bool:
        return node.size >= _LEAST_SHARE * self.root.size

    def _is_bookkeeping(self, node: MemberProfile, parent: MemberProfile) -> bool:
        """Return True for a list of ids that has others, of other lengths, beside it."""
        lists = [each.lengths for each in parent.members.values() if _is_id_list(each)]
        several = sum(max(lengths) >= _MANY for lengths in lists) > 1
        if not several or node.in_rows or not _is_id_list(node) or max(node.lengths) < _SOME:
            return False
        return any(each.later for each in self.result.answers) and lists.count(node.lengths) == 1

    def _array(self, node: MemberProfile, element: MemberProfile) -> None:
        if len(element.rows) >= _ROWS:
            self._columns(node, element.rows)
        if not node.in_rows:
            large = node.size >= min(_MAIN_SHARE * self.root.size, _LARGE * node.count)
            if large and max(node.lengths) > FEW:
                self.pages.append(node)
        elif max(node.lengths) > 2 * FEW and self._heavy(node):
            if node.users:
                self._keep(node)
            else:
                self.elides.append(node)
        if element.longest > _LONG and self._heavy(node):
            self.clips.append(element)

    def _columns(self, node: MemberProfile, rows: list[dict[str, Any]]) -> None:
        columns = [c for c in columns_of([Raw(encode(row)) for row in rows]) if c.plain]
        links = [column for column in columns if roles.is_link(column)]
        best = min(links, key=_link_rank, default=None)
        best_name = "" if best is None else best.name
        values = {
            column.name: [values_at(row, tuple(map(Name, names_of(column.path)))) for row in rows]
            for column in columns
        }
        first: dict[bytes, Column] = {}  # by the values
        for column in columns:
            inner = node.at(names_of(column.path))
            if inner is None:
                continue
            reason, own = "", values[column.name]
            whole = encode([None if value is UNSET else value for value in own])
            others = (values[each.name] for each in columns if not roles.is_link(each))
            if roles.is_link(column) and column is not best:
                if inner.constant or any(_tells(other, own) for other in others):
                    reason = f"links, constant or made of other columns; {best_name} stays"
            elif inner.constant and self._tells_nothing(inner, column):
                reason = "the same in all rows of all answers"
            elif whole in first and len(inner.values) >= _ROWS:
                reason = f"the same as {first[whole].name}"
            first.setdefault(whole, column)
            if reason and inner.users:
                self._keep(inner)
            elif reason:
                self.drops[inner.path] = reason

    def _tells_nothing(self, node: MemberProfile, column: Column) -> bool:
        """Return True for a short constant of several answers that is no usual state, as null."""
        if len(self.result.answers) < 2 or node.values <= _USUAL:
            return False
        return column.size <= _SHORT and not roles.is_known(column)

    def _shorten(self, node: MemberProfile) -> None:
        amount = f"{node.path}: texts of up to {node.longest:,} characters"
        if node.users:
            self._keep(node)
        elif node.in_rows or node.size < _MAIN_SHARE * self.root.size:  # else the look shows most
            self.result.add({"clip": {"at": node.path, "max_chars": CLIP}}, amount)

    def _page_arrays(self) -> None:
        beside = [node for node in self.root.walk() if node not in self.pages and not node.in_rows]
        lengths = [node.lengths for node in self.pages]
        # Arrays of the same length are columns: a page has the same part of each.
        self.pages += [node for node in beside if node.element and node.lengths in lengths]
        paths = [node.path for node in self.pages]
        single = (each for each in self.root.walk() if each.names and not each.in_rows)
        own = next((each.path for each in single if _CURSOR.search(each.names[-1])), None)
        if own is not None:
            self.result.evidence.append(f"{own}: the server has pages of its own")
        if own is not None or any("*" in path for path in paths):
            return
        longest = max(max(node.lengths) for node in self.pages)
        options = {} if paths == [""] else {"at": paths[0] if len(paths) == 1 else paths}
        places = " and ".join(paths) or "the whole"
        reason = f"{places}: up to {longest:,} elements; the rest by `offset`"
        self.result.add({"paginate": {**options, "limit": _LIMIT}}, reason)


def _is_id_list(node: MemberProfile) -> bool:
    each = node.element
    return each is not None and not each.members and each.element is None and each.are_ids


def _tells(column: list[Any], links: list[Any]) -> bool:
    """Return True if each link has the value of its row in its path or its query."""
    pairs = [(str(value), str(link)) for value, link in zip(column, links, strict=True) if link]
    return all(value and (f"/{value}" in link or f"={value}" in link) for value, link in pairs)


def _link_rank(column: Column) -> tuple[int, int, int]:
    names = ("html_url", "web_url", "url", "link", "href")
    rank = names.index(column.path[-1]) if column.path[-1] in names else len(names)
    return (len(column.path), rank, column.position)
