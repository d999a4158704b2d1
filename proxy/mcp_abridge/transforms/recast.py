"""Converts a text or a document to a fixed shape, by a table of cases."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from mcp_abridge.document.fuel import charge
from mcp_abridge.document.gather import values_at
from mcp_abridge.document.paths import Path
from mcp_abridge.document.tree import Slot, Value, compact, encode, opened, raw, text
from mcp_abridge.errors import OptionError, OptionErrors, TransformError, did_you_mean_or_known
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Expression, Pattern, truthy
from mcp_abridge.transforms import shapes
from mcp_abridge.transforms.base import Transform, evaluator
from mcp_abridge.transforms.project import FromExpression, FromPath
from mcp_abridge.transforms.shapes import FromArgument, Leaf, Part, Shape, Source

_SHOWN = 80  # characters of a document in a message


class RecastCase(Struct, frozen=True, kw_only=True):
    """`{match, to}` or `{where, to}`: a condition on documents, and the shape for them."""

    match: Pattern | None = None
    """Searched for in a text; its named groups are captures. Not beside `where`."""
    where: Expression | None = None
    """A condition over the document; of a text, `@` is the text."""
    to: dict[str, Part]
    """The shape, or the part of it that is special to this case."""


class Recast(Transform, frozen=True, dict=True):
    r"""Rebuild the document in the shape of the first case that fits, merged over `common`.

    A case fits a text in which its `match` is found, or a document of any kind for which its
    `where` holds; a case with neither fits everything. Its `to` is merged over `common`: mappings
    are merged, anything else is replaced. If `unless` holds, or no case fits, the document stays
    unchanged; if no case fits, that is counted as a warning.

    In texts, `{name}` is the text of a group `(?P<name>...)` of `match`, `{text}` the whole text,
    or the document as JSON; `{{` and `}}` are braces. A text that is only the `{name}` of a group
    that took no part in the match becomes null. A source is a mapping of one of the keys
    `argument`, `path` and `jmespath`, and optionally a `default`: an argument of the call, the
    value at a path of the document, or the result of an expression over the document (over the
    captures and `text`, if the case has a `match`). Sources may be at any place of the shape; one
    that finds nothing and has no default gives null. A mapping with any other key is a part of the
    shape.

    `vocabulary` lists the only words allowed at a path of the shape, or in an array there. Another
    constant is an error in the rule file; if another word comes from the call or the document, the
    step fails. Null means no word and is always allowed.

    >>> from mcp_abridge.document.tree import Document
    >>> running = RecastCase(match=Pattern(r"Indexing.* (?P<done>\d+)%"), to={"status": "not_ready",
    ...     "hints": {"done": FromExpression(Expression("to_number(done)"))}})
    >>> ready = RecastCase(where=Expression("ready"), to={"status": "ok",
    ...     "files": FromPath(Path.parse("total.files"))})
    >>> recast = Recast(cases=(running, ready), common={"hints": {}, "humanText": "{text}"},
    ...     vocabulary={Path.parse("status"): ("ok", "not_ready")})
    >>> document = Document("Indexing: 40%")
    >>> recast(document.root, Call("status"))
    >>> document.encode()
    b'{"hints":{"done":40},"humanText":"Indexing: 40%","status":"not_ready"}'
    >>> document = Document.read(b'{"ready": true, "total": {"files": 7.0}}')
    >>> recast(document.root, Call("status"))
    >>> document.encode().decode()
    '{"hints":{},"humanText":"{\\"ready\\":true,\\"total\\":{\\"files\\":7.0}}","status":"ok","files":7.0}'
    """

    name: ClassVar[str] = "recast"
    burns: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    retypes: ClassVar[bool] = True

    cases: Annotated[tuple[RecastCase, ...], Meta(min_length=1)]
    """The forms of the document, and the shape for each; the first that fits applies."""
    common: dict[str, Part] = field(default_factory=dict)
    """Members that the shapes of all cases have; `to` is merged over it."""
    unless: Expression | None = None
    """A condition over the document; if it holds, the document stays unchanged."""
    vocabulary: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    """A path in the shapes, and the only words that may be there."""

    def __post_init__(self) -> None:
        wrong, places = [], set()
        for number, case in enumerate(self.cases):
            if case.match is not None and case.where is not None:
                message = "'where' stands beside 'match'; a case has one of them"
                wrong.append(OptionError(("cases", number, "where"), message))
            if case.match is not None and "text" in case.match.groups:
                message = "a group cannot be called 'text', which is the whole text"
                wrong.append(OptionError(("cases", number, "match"), message))
            for leaf in shapes.leaves(self._shapes[number]):
                # A mistake in `common` is wrong for each case, but reported once.
                unknown = [] if leaf.at in places else [*_unknown(leaf, case, number)]
                places |= {leaf.at} if unknown else set()
                wrong += unknown
        for path, words in self.vocabulary.items():
            wrong += _unworded(self._shapes, path, words)
        if wrong:
            raise OptionErrors(wrong)

    def __call__(self, root: Slot, call: Call) -> None:
        reader = CaseReader(root, call)
        if self.unless is not None and reader.holds(self.unless):
            return
        for case, shape in zip(self.cases, self._shapes, strict=True):
            if reader.fits(case):
                result = reader.filled(shape)
                self._check(result)
                root.set(result)
                return
        call.warn("recast: no case fits", f"no case fits what begins with {reader.text[:_SHOWN]!r}")

    def _check(self, result: Value) -> None:
        for path, words in self.vocabulary.items():
            value = shapes.unknown_word(values_at(result, path.steps), words)
            if value is not None:
                message = f"{_excerpt(value)} is none of the words of {path.text!r}"
                raise TransformError(self.name, ValueError(message))

    @cached_property
    def _shapes(self) -> tuple[Shape, ...]:
        common = shapes.taken_apart(self.common, ("common",))
        return tuple(
            shapes.deep_merge(shapes.taken_apart(case.to, ("cases", number, "to")), common)
            for number, case in enumerate(self.cases)
        )


class CaseReader:
    """Tests cases on a document, and fills a shape from it, the captures and the call."""

    def __init__(self, root: Slot, call: Call) -> None:
        self._value = root.get()
        self._content = text(self._value)
        self._call = call
        self._captures: dict[str, str | None] | None = None

    @cached_property
    def text(self) -> str:
        return compact(encode(self._value)).decode() if self._content is None else self._content

    def fits(self, case: RecastCase) -> bool:
        if case.match is None:
            return case.where is None or self.holds(case.where)
        if self._content is None:
            return False
        match = case.match.search(self._content, fuel=self._call.fuel)
        if match is not None:
            self._captures = {**match.groupdict(), "text": self._content}
        return match is not None

    def holds(self, condition: Expression) -> bool:
        return truthy(evaluator(Recast.name, condition, self._call)(self._value))

    def filled(self, shape: Shape) -> Value:
        if isinstance(shape, dict):
            return {word: self.filled(member) for word, member in shape.items()}
        if isinstance(shape, list):
            return [self.filled(element) for element in shape]
        part = shape.part
        if isinstance(part, str):
            return self._text(part)
        if not isinstance(part, Source):
            return part
        value = self._value_of(part)
        over_null = isinstance(part, FromPath) and part.over_null
        if value is UNSET or (over_null and opened(value) is None):
            value = None if part.default is UNSET else part.default
        if isinstance(value, dict | list | Struct):
            # Later steps may change the value: the document's own must not change.
            value = raw(value)
            self._call.fuel.burn(len(memoryview(value)) >> 4)
        return value

    def _value_of(self, source: Source) -> Value | UnsetType:
        if isinstance(source, FromPath):
            return values_at(self._value, source.path.steps)
        if isinstance(source, FromArgument):
            value = self._call.argument(source.argument)
        else:
            over = self._value if self._captures is None else self._captures
            value = evaluator(Recast.name, source.jmespath, self._call)(over)
            charge(value, self._call.fuel)  # an expression can repeat parts without end
        return UNSET if value is None else value

    def _text(self, content: str) -> str | None:
        parts = shapes.spelled(content)
        if len(parts) == 3 and not parts[0] + parts[2]:
            return self._capture(parts[1])
        texts = [(self._capture(part) or "") if at % 2 else part for at, part in enumerate(parts)]
        self._call.fuel.burn(sum(map(len, texts)) >> 4)
        return "".join(texts)

    def _capture(self, name: str) -> str | None:
        # Without a match, `text` is the only name.
        return self.text if self._captures is None else self._captures[name]


def _unknown(leaf: Leaf, case: RecastCase, number: int) -> Iterator[OptionError]:
    captures = ["text", *(case.match.groups if case.match is not None else ())]
    part, matched = leaf.part, case.match is not None and leaf.at[0] == "cases"
    if isinstance(part, str):
        try:
            names = shapes.spelled(part)[1::2]
        except ValueError as error:
            yield OptionError(leaf.at, str(error))
            return
        braced = [f"{{{each}}}" for each in captures]
        for name in names:
            if name not in captures:
                yield OptionError(leaf.at, _no_capture(f"{{{name}}}", braced, number))
    elif matched and isinstance(part, FromPath) and part.path.steps:
        message = f"a text, which 'match' is for, has no {part.path.text!r}"
        yield OptionError((*leaf.at, "path"), f"{message}; a capture is written '{{name}}'")
    elif matched and isinstance(part, FromExpression):
        for name in part.jmespath.names or ():
            if name not in captures:
                yield OptionError((*leaf.at, "jmespath"), _no_capture(name, captures, number))


def _no_capture(name: str, captures: list[str], number: int) -> str:
    advice = did_you_mean_or_known(name, captures)
    return f"{name!r} is no capture of case {number + 1}{advice}"


def _unworded(
    forms: tuple[Shape, ...], path: Path, words: tuple[str, ...]
) -> Iterator[OptionError]:
    place = ("vocabulary", path.text)
    if not path.plain or not path.steps:
        yield OptionError(place, f"{path.text!r} is not names joined by dots", of_key=True)
        return
    pairs = [pair for shape in forms for pair in shapes.standing(shape, path.steps)]
    if not pairs:
        yield OptionError(place, f"no case puts anything at {path.text!r}", of_key=True)
    for leaf, rest in pairs:
        other = shapes.unknown_word(shapes.constant(leaf, rest), words)
        if other is not None:
            advice = did_you_mean_or_known(other if isinstance(other, str) else "", words)
            message = f"{_excerpt(other)} is none of the words of {path.text!r}{advice}"
            yield OptionError(leaf.at, message)


def _excerpt(value: Value) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return repr(value[:_SHOWN]) if isinstance(value, str) else encode(value).decode()[:_SHOWN]
