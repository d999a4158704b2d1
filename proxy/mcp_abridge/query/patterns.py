"""Regular expressions and JMESPath expressions of rule files, checked on creation."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from mcp_abridge.document.fuel import Fuel, characters
from mcp_abridge.errors import AbridgeError, OutOfFuel, Refusal

if TYPE_CHECKING:
    from mcp_abridge.query.lookups import Lookups

_SHOWN = 60  # characters of a value that a message repeats
_READ = 300  # characters of an expression
_SHORT_NS = 10_000_000  # nanoseconds of a search that needs no look at the time
_Subject = str | bytes | memoryview
_CONTINUING = bytes(range(0x80, 0xC0))  # the bytes of a character in UTF-8 after its first


# A text, a name or a literal in quotes, or the sign for the whole value.
_ROOT = re.compile(r"""'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|"(?:[^"\\]|\\.)*"|\$(?![\w$])""")


# An anchor, or (its group) what must not be taken for one: an escape, or a class of characters.
_ANCHOR = re.compile(r"(\\[^Az]|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])|\\[Az]|[\^$]", re.DOTALL)


def of_lines(text: str, flags: str = "m") -> str:
    r"""Return a pattern whose `^` and `$` are at the ends of lines, also of those with `\r\n`.

    >>> of_lines(r"^ok\$ [$]$")
    '(?m)^ok\\$ [$](?:\\r?$)'
    """
    ends = "$" in text and r"\Q" not in text
    if ends:
        text = _ANCHOR.sub(lambda match: r"(?:\r?$)" if match[0] == "$" else match[0], text)
    return f"(?{flags}){text}"


def _source(text: str) -> str:
    """Return an expression with a function in place of `$`, which the library does not know."""
    if "$" not in text:
        return text
    return _ROOT.sub(lambda match: "root()" if match[0] == "$" else match[0], text)


class PatternError(AbridgeError):
    """A regular or JMESPath expression that cannot be used."""


class Pattern:
    """A regular expression of the linear-time engine (RE2 syntax)."""

    __slots__ = ("_compiled", "_to_ends", "_worst", "text")

    def __init__(self, text: str, *, modest: bool = False) -> None:
        """Compile `text`. Raises PatternError if it is no regular expression of that engine.

        `modest`: limit its memory to an eighth, for an expression that comes from a model.
        """
        import re2

        options = re2.Options()
        options.log_errors = False
        if modest:
            options.max_mem >>= 3
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            reason = reason.decode() if isinstance(reason, bytes) else str(reason)
            raise PatternError(
                f"{clipped(text)!r} is not a regular expression RE2 takes: {clipped(reason)}"
            ) from None
        # Nanoseconds per byte if all states of the expression are active, and each holds the
        # positions of its groups; measured, and rounded up.
        self._worst = self._compiled.programsize * (10 + self._compiled.groups * 3 // 10)
        self._to_ends: Any = None
        self.text = text

    @property
    def groups(self) -> tuple[str, ...]:
        r"""The names of its groups, in alphabetical order."""
        return tuple(sorted(self._compiled.groupindex))

    def without_anchors(self, more: str) -> "Pattern | None":
        r"""Return a pattern that matches wherever this one does, beside `more`; None if unknown.

        >>> Pattern(r"^[$^]\$+$").without_anchors("|x")
        Pattern('(?:)[$^]\\$+(?:)|x')
        """
        if r"\Q" in self.text:
            return None
        return Pattern(_ANCHOR.sub(lambda match: match[1] or "(?:)", self.text) + more, modest=True)

    def groups_of(self, subject: str, fuel: Fuel) -> dict[str, str | None] | None:
        """Return the named groups of the first match, in their order; None if there is none."""
        match = self.search(subject, fuel)
        index = self._compiled.groupindex
        return match and {name: match[name] for name in sorted(index, key=index.get)}

    def search(self, subject: _Subject, fuel: Fuel | None = None, at: int = 0) -> Any:
        """Return the first match from `at` on, or None. Raises OutOfFuel if it may take long."""
        if fuel is None:
            return self._compiled.search(subject)
        self._try(subject, fuel)
        start_ns = perf_counter_ns()
        match = self._compiled.search(subject, at)
        fuel.burn_since(start_ns)
        return match

    def end_of_first(self, subject: str) -> int:
        """Return the end of the first match in a line, in half the time of `search`; 0 for none."""
        content = subject.encode()
        match = self._compiled.search(content)
        return 0 if match is None else len(content[: match.end()].decode())

    def in_parts(
        self, whole: bytes, ends: Callable[[], list[int]], fuel: Fuel
    ) -> Iterator[tuple[int, int]]:
        """Yield the index of each part with a match, and the end of that, or of its line.

        Parts begin on lines of their own. `ends` gives their ends, if there is a match.
        """
        self._try(whole, fuel)
        search, start_ns = self._with_rest_of_line().finditer, perf_counter_ns()
        resume = limit = 0
        while resume >= 0:
            at, resume = resume, -1
            for match in search(whole, at):
                start, end = match.span()
                if start >= limit:
                    index = bisect_right(ends(), start)
                    limit = ends()[index]
                    yield index, end
                if end >= limit:  # it may hide the first one in the next part
                    resume = limit
                    break
        fuel.burn_since(start_ns)

    def _with_rest_of_line(self) -> Any:
        """Return the expression that has one match in a line: to resume a search takes long."""
        if self._to_ends is None:
            import re2

            self._to_ends = self._compiled
            with suppress(re2.error):
                if r"\Q" not in self.text:
                    text = rf"(?:{self.text})[^\n]*"
                    self._to_ends = re2.compile(text, self._compiled.options)
        return self._to_ends

    def in_each(self, subjects: Iterable[str], fuel: Fuel) -> list[int]:
        """Return the index of each text with a match, of texts that `in_parts` has searched."""
        start_ns, search = perf_counter_ns(), self._compiled.search
        indexes = [index for index, each in enumerate(subjects) if search(each.encode())]
        fuel.burn_since(start_ns)
        return indexes

    def finditer(self, subject: str, fuel: Fuel) -> Iterator[Any]:
        """Yield every match. Raises OutOfFuel: all searches together may take quadratic time."""
        self._try(subject, fuel)
        return self._each(subject, fuel)

    def spans(self, subject: str, fuel: Fuel) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of every match in `subject`, as `finditer` finds them.

        An empty match at the end of another one is none.
        """
        fuel.burn(characters(subject))
        # The engine takes bytes: to count all characters at each match takes most of its time.
        content, wide = subject.encode(), not subject.isascii()
        self._try(content, fuel)
        counted = at = 0  # in bytes, in characters
        before = -1
        for match in self._each(content, fuel):
            start, end = match.span()
            if start == end == before:
                continue  # the engine reports an empty match twice
            before = end
            if wide:
                at += _length(content[counted:start])
                counted, length = start, _length(content[start:end])
                start, end = at, at + length
            yield start, end

    def replace(self, subject: str, replacement: str, fuel: Fuel) -> str:
        r"""Replace every match; `\1` is a group. Raises OutOfFuel if it takes or makes too much."""
        parts: list[str] = []
        end, last, groups = 0, None, replacement.count("\\")
        for match in self.finditer(subject, fuel):
            # The engine reports an empty match twice unless it is right at the previous match.
            if match.span() != last:
                start, stop = last = match.span()
                # A group is at most as long as the match: its fuel is burned before it is copied.
                fuel.burn(4 + (len(replacement) + groups * (stop - start)) // 4)
                parts += subject[end:start], match.expand(replacement)
                end = stop
        return "".join(parts) + subject[end:]

    def _each(self, subject: _Subject, fuel: Fuel) -> Iterator[Any]:
        start_ns = perf_counter_ns()
        for match in self._compiled.finditer(subject):
            fuel.burn_since(start_ns)
            yield match
            start_ns = perf_counter_ns()
        fuel.burn_since(start_ns)

    def _try(self, subject: _Subject, fuel: Fuel) -> None:
        """Search part by part if all may take too much fuel: a search cannot be stopped."""
        wide = isinstance(subject, str) and not subject.isascii()
        worst = 4 * self._worst if wide else self._worst  # per character, or per byte
        longest = len(subject) * worst
        if longest <= min(fuel.remaining * 1000, _SHORT_NS) or longest <= fuel.room * 1000:
            return
        before, start = fuel.room, 0
        while start < len(subject):
            end = start + fuel.room * 1000 // worst + 1
            for _ in self._each(subject[start:end], fuel):
                pass
            start, rest = end, fuel.room
            # The search of the whole takes as long again.
            again = start >= len(subject) and rest < before - rest
            if again:
                fuel.burn(before - rest)  # raises if units are short, not time
            if again or rest < 0:
                raise OutOfFuel("its search takes too long")

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __reduce__(self) -> tuple[type["Pattern"], tuple[str]]:
        return Pattern, (self.text,)


class Expression:
    """A JMESPath expression; in it, `$` is the whole value, `argument('name')` one of the call."""

    __slots__ = ("_bare", "_parsed", "text")

    def __init__(self, text: str) -> None:
        """Parse `text`. Raises PatternError if it is no JMESPath expression."""
        self._bare: frozenset[int] | None = None
        import warnings

        import jmespath.exceptions

        from mcp_abridge.query.parser import Parser

        source = _source(text)
        try:
            with warnings.catch_warnings():
                # `text` in backticks without quotes is an older way to write 'text'; it works.
                warnings.simplefilter("ignore", PendingDeprecationWarning)
                self._parsed = Parser().parse(source)
            # The library caches the last 512; expressions of a model may take a megabyte each.
            Parser.purge()
        except RecursionError:
            raise PatternError("nested too deeply") from None
        except ValueError as error:
            # Python's own error if a number has too many digits, else an error of the library.
            if not text.strip():
                raise PatternError("an empty text is no JMESPath expression") from None
            if not isinstance(error, jmespath.exceptions.ParseError):
                raise PatternError(f"{clipped(text)!r} has a number too long to read") from None
            from mcp_abridge.query.mistakes import unreadable

            reason = clipped(unreadable(source, error))
            message = f"{clipped(text)!r} is not a JMESPath expression: {reason}"
            raise PatternError(message) from None
        self.text = text

    @property
    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = self._parsed.parsed  # the same each time: `Kinds` marks its nodes
        return tree

    @property
    def quoted(self) -> set[str]:
        """The names in double quotes: they are members, though a text may be meant."""
        import warnings

        from jmespath.lexer import Lexer

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            tokens = list(Lexer().tokenize(_source(self.text)))
        return {each["value"] for each in tokens if each["type"] == "quoted_identifier"}

    @property
    def names(self) -> tuple[str, ...] | None:
        """The members of an object that the expression reads; None if it may read any."""
        return names_read(self.tree)

    def bind(
        self, arguments: Mapping[str, Any], fuel: Fuel, lookups: "Lookups | None" = None
    ) -> Callable[[Any], Any]:
        """Return the function that evaluates this expression over plain values.

        It records missing members in `lookups`. It raises Refusal with the reason if the
        expression does not fit the value (a wrong type, an unknown function, a bare word that is
        compared and is no member there), and OutOfFuel.
        """
        from mcp_abridge.query.jmespath import Interpreter
        from mcp_abridge.query.trees import bare_names

        # One interpreter for all values: it caches the method for each kind of node.
        interpreter, parsed = Interpreter(fuel, arguments, lookups), self._parsed.parsed
        if self._bare is None:
            self._bare = frozenset(id(name) for name in bare_names(self))
        interpreter.bare = {*self._bare}

        def evaluate(value: Any) -> Any:
            try:
                return interpreter.over(parsed, value)
            except (OutOfFuel, Refusal):
                raise
            except Exception as error:
                # Not just JMESPathError: a slice with step 0 raises Python's ValueError, the
                # maximum of texts and numbers a TypeError.
                from mcp_abridge.query.mistakes import unsuitable

                raise Refusal(unsuitable(error)) from error

        return evaluate

    def search(self, value: Any, fuel: Fuel | None = None) -> Any:
        return self.bind({}, fuel or Fuel())(value)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.text,)


def clipped(text: str) -> str:
    """Return an expression as a message repeats it: of a long one the beginning."""
    return text if len(text) <= _READ else f"{text[:_SHOWN]}…"


FIRST_ALONE = {
    "filter_projection",
    "flatten",
    "index_expression",
    "pipe",
    "projection",
    "value_projection",
}
"""Kinds of nodes of which only the first child is evaluated over the same value as the node."""


OF_THE_VALUE = frozenset(("grep", "head", "lines", "outline", "root", "tail", "uniq"))
"""Functions of the value that they are applied to, which is not among their arguments."""


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a parsed expression, the outer ones first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting.extend(child for child in node.get("children", ()) if isinstance(child, dict))


def names_read(tree: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the members of an object that an expression reads; None if it may read any."""
    try:
        names = _names(tree)
    except RecursionError:
        return None
    return None if None in names else tuple(name for name in names if name is not None)


def _names(node: dict[str, Any]) -> dict[str | None, None]:
    """Return the members that `node` reads, in order; None among them for the whole value."""
    kind = node["type"]
    if kind == "field":
        return {node["value"]: None}
    if kind in ("literal", "expref"):
        return {}
    if kind in ("current", "identity", "index", "slice"):
        return {None: None}
    if kind == "function_expression" and node["value"] in OF_THE_VALUE:
        return {None: None}
    first_alone = kind in FIRST_ALONE or kind == "subexpression"
    children = node["children"][:1] if first_alone else node["children"]
    return {name: None for child in children for name in _names(child)}


def truthy(value: Any) -> bool:
    """Return True if `value` is true in JMESPath: all but null, false and empty values."""
    return not (value is None or value is False or value == "" or value == [] or value == {})


def _length(content: bytes) -> int:
    return len(content.translate(None, _CONTINUING))
