"""The functions with which a model asks a result: search, overview, lines, counts by a member.

Without them, a view can cut a text but not search it, and cannot count. They work in views, and in
the expressions of rules. Each applies to the value before it: `items[0].body | grep('fail')`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from typing import Any

from jmespath.functions import signature
from msgspec import Raw

from mcp_abridge.document.fuel import Fuel, characters, charge
from mcp_abridge.document.measure import exceeds
from mcp_abridge.document.names import spelled
from mcp_abridge.document.own_names import server_name
from mcp_abridge.document.rows import Spelling
from mcp_abridge.document.tree import Number, compact, encode, loads, opened
from mcp_abridge.errors import Refusal
from mcp_abridge.query import nearby
from mcp_abridge.query.amounts import Amounts
from mcp_abridge.query.conversions import Conversions
from mcp_abridge.query.headings import for_outline, headings
from mcp_abridge.query.hits import LISTED, Hits, hits_of
from mcp_abridge.query.lines import in_text
from mcp_abridge.query.numerals import kind
from mcp_abridge.query.patterns import Pattern, PatternError, of_lines
from mcp_abridge.query.search import in_structure

_MOST_CONTEXT = 50  # lines before and after a hit
_PATTERNS = 16  # compiled patterns that are kept
_NUMBERS = frozenset((int, float, Number, Spelling))
_WORDS: dict[str, type] = {"true": bool, "false": bool, "null": type(None)}
_ACCENTED = 1 << 20  # bytes in which other accents are looked for
_ROWS = 20_000  # elements of an array in which they are
_COMPILED = 100  # units to compile a pattern
_SAMPLE = 200  # elements of an array that an outline reads


class Questions(Amounts, Conversions):
    """The functions beside those of JMESPath; `current` is the value that a call is applied to.

    `source_text` is the text that the value was read from, if a search goes through that, too.
    """

    current: Any = None
    source_text: str | None = None
    _fuel: Fuel
    _patterns: dict[str, Pattern] | None = None

    @signature({"types": ["string", "number"], "variadic": True})
    def _func_grep(self, pattern: Any, context: Any = 0, *_: Any) -> Any:
        if isinstance(context, str):
            raise Refusal("grep('pattern', 3): 3 lines of context; (?i) before it ignores case")
        text, remaining = str(pattern), self._fuel.remaining
        around = min(max(int(context), 0), _MOST_CONTEXT)
        if (in_brackets := nearby.in_brackets(text)) is not None:
            self._say(f"{text} is searched as it is; as a class of letters it is (?:{text})", True)
            text = in_brackets
        literal = nearby.literal(text)
        try:
            if self.pattern(f"(?m){text}").search("", self._fuel):
                raise Refusal(
                    f"grep: {text!r} matches the empty text, and so it is everywhere; write one "
                    "that needs a character, such as 'x+' for 'x*'"
                )
        except (Refusal, PatternError):
            if text == literal or self._search(literal, around).none:
                raise
            self._say(f"{text} is searched as it is", True)
            text = literal
        result = self._search(of_lines(text), around)
        either = text.replace(r"\|", "|")
        if result.none and either != text:
            others = self._search(of_lines(either), around)
            if not others.none:
                self._say(r"\| is read as |, as basic patterns have it", True)
                text, result = either, others
        nothing = result.none
        if self._may_search(result, remaining):
            hits = self._search(of_lines(text, "im"), around).beyond(result)
            if not hits.none:
                result["ignoring_case"] = hits
        if text != literal and self._may_search(result, remaining):
            hits = self._search(literal, around)
            if not hits.places <= result.places:
                result["as_text"] = hits
        loose = nearby.looser(text) if nothing else text
        if text != loose and self._may_search(result, remaining):
            hits = self._search(of_lines(loose), around)
            if not hits.none:
                result["loosely"] = hits
        if nothing and self._may_search(result, remaining):
            hits = self._accented(text, around)
            if not hits.none:
                result["ignoring_accents"] = hits
        if self.kinds is not None:
            self._mistaken(text, result)
            self.kinds.beside_hits |= dict.fromkeys(result.others_beside)
        return result

    def _accented(self, text: str, around: int) -> Hits:
        """Return the hits of words that have other accents; none in a large value."""
        value = self.current
        many = isinstance(value, list) and len(value) > _ROWS
        if many or exceeds(value, _ACCENTED, self._fuel):
            return Hits()
        content = value if isinstance(value, str) else encode(value).decode()
        self._fuel.burn(len(content) >> 4)
        if r"\u" in content and not isinstance(value, str):
            content = encode(loads(content.encode())).decode()
        words = [] if (content + text).isascii() else nearby.accented(text, content)
        if not words:
            return Hits()
        pattern = "|".join(nearby.looser(nearby.literal(word)) for word in words)
        return self._search(of_lines(pattern, "im"), around)

    def _mistaken(self, text: str, result: Hits) -> None:
        """Note that more hits are there than are listed. Raises Refusal if JSON was looked for."""
        pair = nearby.name_and_value(text) if result.none else None
        if pair is not None:
            names = self._search(of_lines(f"^{nearby.literal(pair[0])}$"), 0)
            if names.get("matched_names"):
                raise Refusal(f"grep: {nearby.advice(*pair, names)}")
        total = next(iter(result.values()))
        if total > len(result[result.list_name]) >= LISTED:
            self._say(f"grep() lists the first {LISTED} hits alone", True)

    def _may_search(self, hits: Hits, remaining: int) -> bool:
        return hits.few and 3 * self._fuel.remaining >= 2 * remaining

    def _search(self, pattern: str, around: int) -> Hits:
        compiled, value = self.pattern(pattern), self.current
        if isinstance(value, str):
            return in_text(value, compiled, around, self._fuel)
        # Numbers are searched too if the pattern may fit one, and true, false and null by name.
        others = _NUMBERS if re.search(r"\d|\\d", pattern) else frozenset[type]()
        for word, type_ in _WORDS.items():
            match = compiled.search(word, self._fuel)
            others |= {type_} if match and match[0] == word else set()
        hits = in_structure(value, compiled, self._fuel, others)
        if self.source_text is not None and hits.described < LISTED:
            in_lines = in_text(self.source_text, compiled, around, self._fuel)
            # What structure leaves out of its text: signs, comments, words around it.
            if len(in_lines["lines"]) > hits.described:
                hits["text"] = in_lines
        return hits

    @signature({"types": ["number"]})
    def _func_head(self, count: Any) -> Any:
        return self._part("head", 1, int(count))

    @signature({"types": ["number"]})
    def _func_tail(self, count: Any) -> Any:
        return self._part("tail", -int(count), None if count > 0 else 0)

    @signature({"types": ["number"]}, {"types": ["number"]})
    def _func_lines(self, first: Any, last: Any) -> Any:
        return self._part("lines", int(first), int(last))

    def _part(self, name: str, first: int, last: int | None) -> Any:
        """Return a range of lines or elements; negative numbers count from the end."""
        value = self.current
        value = value if (hits := hits_of(value)) is None else hits
        if isinstance(value, list):
            self._fuel.burn(len(value))
            parts: Any = value
        elif isinstance(value, str):
            self._fuel.burn(characters(value) + value.count("\n") * 4)
            parts = list(StringIO(value, newline="\n"))
        else:
            reason = f"{name}() applies to a text or an array, not to {_kind(value)}"
            members = value.items() if isinstance(value, dict) else ()
            fit = [(len(each), n) for n, each in members if isinstance(each, str | list)]
            place = spelled(max(fit)[1]) if fit else ""
            reason += f"; write {place} | {name}(…)" if fit else ""
            raise Refusal(reason)
        start = max(len(parts) + first, 0) if first < 0 else max(first, 1) - 1
        last = len(parts) + last + 1 if last is not None and last < 0 else last
        parts = parts[start : last if last is None else max(last, 0)]
        return parts if isinstance(value, list) else "".join(parts)

    @signature()
    def _func_outline(self) -> Any:
        charge(self.current, self._fuel)
        if isinstance(self.current, str):
            return _headings(self.current, self._fuel)
        return dict(_members(self.current))

    @signature({"types": []}, {"types": ["string"]})
    def _func_matches(self, text: Any, pattern: str) -> bool:
        """Return True if a text has a match of a regular expression; False if it is no text."""
        if not isinstance(text, str):
            return False
        return self.pattern(pattern).search(text, self._fuel) is not None

    def pattern(self, text: str) -> Pattern:
        """Return a compiled pattern; a few are kept, since `matches` asks each element."""
        if self._patterns is None or len(self._patterns) > _PATTERNS:
            self._patterns = {}
        if text not in self._patterns:
            self._fuel.burn(_COMPILED + len(text))
            self._patterns[text] = Pattern(text, modest=True)
        return self._patterns[text]

    # A value of another kind does not match: it is noted by `Kinds`, for a remark.
    @signature({"types": []}, {"types": []})
    def _func_contains(self, value: Any, part: Any) -> bool:
        holds = isinstance(value, list) or (isinstance(value, str) and isinstance(part, str))
        return holds and part in value

    @signature({"types": []}, {"types": ["string"]})
    def _func_starts_with(self, text: Any, part: str) -> bool:
        return isinstance(text, str) and text.startswith(part)

    @signature({"types": []}, {"types": ["string"]})
    def _func_ends_with(self, text: Any, part: str) -> bool:
        return isinstance(text, str) and text.endswith(part)

    @signature({"types": ["object"]})
    def _func_entries(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        self._fuel.reserve(2 * len(value))
        return [{"key": name, "value": member} for name, member in value.items()]

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_count_by(self, array: list[Any], by: Any) -> dict[str, int]:
        return dict(Counter(self._groups(array, by)).most_common())

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_group_by(self, array: list[Any], by: Any) -> dict[str, list[Any]]:
        names = self._groups(array, by)
        groups: dict[str, list[Any]] = {name: [] for name in names}
        for element, name in zip(array, names, strict=True):
            groups[name].append(element)
        return groups

    @signature({"types": ["array"]})
    def _func_unique(self, array: list[Any]) -> list[Any]:
        charge(array, self._fuel, 2)
        if {*map(type, array)} == {Raw}:
            spellings = dict.fromkeys(map(bytes, array))
            return array if len(spellings) == len(array) else [*map(Raw, spellings)]
        first: dict[str | bytes, Any] = {}
        for element in array:
            first.setdefault(element if type(element) is str else encode(element), element)
        return [*first.values()]


def _headings(text: str, fuel: Fuel) -> dict[str, Any]:
    every = headings(text, fuel)
    some = for_outline(every)
    lines = text.count("\n") + (not text.endswith("\n"))
    result: dict[str, Any] = {"text": f"{lines} lines, {len(text)} characters"}
    if len(some) < len(every):
        lower = ", of lower levels" * (some[-1].offset > every[len(some) - 1].offset)
        result["left_out"] = f"{len(every) - len(some)} of {len(every)} headings{lower}"
    return result | {"headings": [{"line": each.line, "text": each.text} for each in some]}


def _members(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the paths inside a value to two levels, each with its kinds and size.

    Parts that are unopened are opened if they are among those that are read.
    """
    yield "@", _kind(value) + _sample(value)
    waiting = [("", value, 2)]
    while waiting:
        path, item, levels = waiting.pop(0)
        inside: list[tuple[str, list[Any], str]] = []
        if isinstance(item, dict):
            for name, member in islice(item.items(), _SAMPLE):
                inside.append((_member_path(path, name), [member], ""))
        elif isinstance(item, list):
            rows = [row for row in map(opened, item[:_SAMPLE]) if isinstance(row, dict)]
            names = dict.fromkeys(name for row in rows for name in row)
            for name in islice(names, _SAMPLE):
                values = [row[name] for row in rows if name in row]
                rare = f"; in {len(values)} of {len(rows)}" if len(values) < len(rows) else ""
                inside.append((_member_path(f"{path}[]", name), values, rare))
        for member_path, values, rare in inside:
            kinds = dict[str, Any]()  # the largest value of each
            for value in sorted(map(opened, values), key=_weight, reverse=True):
                kinds.setdefault(kind(value), value)
            largest = next(iter(kinds.values()))
            yield member_path, " or ".join(map(_kind, kinds.values())) + _sample(largest) + rare
            if levels > 1 and isinstance(largest, dict | list):
                waiting.append((member_path, largest, levels - 1))


def _sample(value: Any) -> str:
    """Return how many members or elements of a value an outline reads, if not all."""
    several = isinstance(value, dict | list) and len(value) > _SAMPLE
    return f"; read are the first {_SAMPLE}" if several else ""


def _member_path(path: str, name: str) -> str:
    name = spelled(server_name(name))
    return f"{path}.{name}" if path else name


def _weight(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text of {len(value)}"
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        return f"{kind} of {len(value)}, {len(compact(encode(value)))} bytes"
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "number"
