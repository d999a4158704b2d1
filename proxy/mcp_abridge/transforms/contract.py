"""Checks the output of a rule against the schema it promises (`output_schema`, `validate`)."""

from contextlib import suppress
from functools import cached_property
from typing import ClassVar

from mcp_abridge.document.tree import Document, Slot, encode, plain, text
from mcp_abridge.errors import DocumentError, Refusal
from mcp_abridge.query.call import Call
from mcp_abridge.schema.references import NOTES, lacking, within
from mcp_abridge.schema.violations import LIMIT, Checker, Violation, decoded
from mcp_abridge.transforms.base import Schema, Transform

_NAMED = 3  # violations that a refusal names
_DEEPEST = 6  # names in the kind of a violation: a recursive schema has no end of them


class Contract(Transform, frozen=True, dict=True):
    """The step that `validate` adds: the document after the other steps must fit `schema`.

    If it does not, each kind of violation is a warning; if the contract `refuses`, the step also
    raises Refusal, and with `as_text` the result has the document as a text alone. `schema` is a
    result of `normalised`. A text that was read as structure (`parse`) is checked as it is written
    back: as an object if it is an object in JSON.
    """

    name: ClassVar[str] = "contract"
    burns: ClassVar[bool] = True

    schema: Schema
    refuses: bool
    as_text: bool = False

    def __call__(self, root: Slot, call: Call) -> None:
        raw = _as_sent(root.document)
        call.fuel.burn(len(raw) >> 6)
        violations = list(self._checker.violations(decoded(raw), call.fuel))
        kinds: dict[str, list[Violation]] = {}
        for each in violations:
            kinds.setdefault(self._kind(each), []).append(each)
        for kind, alike in kinds.items():
            call.warn(kind, alike[0].text + _more(alike, 1, ", "))
        call.unfit = bool(violations) and self.as_text
        if violations and self.refuses:
            texts = "; ".join(each.text for each in violations[:_NAMED])
            rest = _more(violations, _NAMED, "; ")
            raise Refusal(f"the response breaks its contract: {texts}{rest}")

    @cached_property
    def _checker(self) -> Checker:
        return Checker(self.schema)

    @cached_property
    def _names(self) -> frozenset[str]:
        names: set[str] = set()

        def note(node: Schema) -> Schema:
            names.update(node.get("properties", ()), node.get("required", ()))
            return within(node, note)

        note(self.schema)
        return frozenset(names)

    def _kind(self, violation: Violation) -> str:
        names = [name for name in violation.path if isinstance(name, str)]
        # The name of a member that the schema does not name is upstream text.
        names_of_schema = [name if name in self._names else "*" for name in names[:_DEEPEST]]
        path = ".".join(names_of_schema) + ("…" if len(names) > _DEEPEST else "")
        return " ".join(filter(None, ("contract:", path, violation.keyword)))


def _more(violations: list[Violation], count: int, separator: str) -> str:
    rest = len(violations) - count
    if rest < 1:
        return ""
    return f"{separator}and {rest} {'or more' if len(violations) >= LIMIT else 'more'}"


def _as_sent(document: Document) -> bytes:
    """Return the document in JSON; texts read as structure are written back."""
    if not document.closers:
        return encode(document.cell[0])
    copy = Document(plain(document.cell[0]))
    for closing in reversed(document.closers):
        closing.write(copy)
    inside = text(copy.cell[0])
    if inside is not None and inside[:1] == "{":
        with suppress(DocumentError):
            Document.read(inside.encode())
            return inside.encode()
    return encode(copy.cell[0])


def normalised(schema: Schema) -> Schema:
    """Return a valid schema with `nullable: true` (OpenAPI) translated to JSON Schema.

    The `$id` of the root is removed: the schemas of several tools must not share one.
    """

    def change(node: Schema) -> Schema:
        part = {word: value for word, value in within(node, change).items() if word != "nullable"}
        return _with_null(part) if node.get("nullable") is True else part

    return change({word: value for word, value in schema.items() if word != "$id"})


# Keywords that constrain a value of any type, null too; all others are for one type.
_OF_ANY_TYPE = frozenset(("$dynamicRef", "$ref", "allOf", "anyOf", "const", "if", "not", "oneOf"))


def _with_null(part: Schema) -> Schema:
    if "type" in part and not part.keys() & _OF_ANY_TYPE:
        kinds = part["type"] if isinstance(part["type"], list) else [part["type"]]
        changed = {**part, "type": list(dict.fromkeys([*kinds, "null"]))}
        if "enum" in part and None not in part["enum"]:
            changed["enum"] = [*part["enum"], None]
        return changed
    notes = {word: value for word, value in part.items() if word in NOTES}
    return {**notes, "anyOf": [lacking(part, NOTES), {"type": "null"}]}
