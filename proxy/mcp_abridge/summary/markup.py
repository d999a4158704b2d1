"""XML as objects and arrays, in which elements that repeat are rows.

Without it, the entries of a feed are cut as any text is, and no view can filter them.
"""

from collections import Counter
from typing import Any

from mcp_abridge.document.tree import Value, encode
from mcp_abridge.errors import DocumentError

_LONGEST = 1 << 21  # characters: the parser takes about 0.2 s for them
_DEEPEST = 60  # levels
_FEWEST = 3  # elements of one name side by side, in a document that has rows
_TEXT = "text"
"""The member that is the text of an element with attributes."""


class Element:
    """An element: its attributes, what is inside, and `path`, the names that lead to it."""

    __slots__ = ("attributes", "inner", "name", "path", "text")

    def __init__(self, name: str, attributes: dict[str, str], path: tuple[str, ...]) -> None:
        self.name, self.attributes, self.path = name, attributes, path
        self.inner: list[Element] = []
        self.text = ""


class _Reader:
    """A reader of one document; `arrays` are the paths at which elements of one name repeat."""

    def __init__(self) -> None:
        self.arrays: set[tuple[str, ...]] = set()
        self.has_rows = False
        self.loses = False
        self._open = [Element("", {}, ())]

    def read(self, text: str) -> Element:
        from xml.parsers import expat

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._lose
        parser.StartDoctypeDeclHandler = _refuse_html_and_entities
        parser.SkippedEntityHandler = _refuse_entity
        try:
            parser.Parse(text.encode(), True)
        except (expat.ExpatError, UnicodeEncodeError) as error:
            raise DocumentError(f"not XML: {error}") from error
        return self._open[0]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        outer = self._open[-1]
        if len(self._open) > _DEEPEST:
            raise DocumentError(f"XML nested more than {_DEEPEST} levels deep")
        element = Element(name, attributes, (*outer.path, name))
        outer.inner.append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        counts = Counter(each.name for each in element.inner)
        self.arrays |= {(*element.path, name) for name, count in counts.items() if count > 1}
        self.has_rows |= max(counts.values(), default=0) >= _FEWEST
        if element.inner and element.text.strip():
            self.loses = True  # the order of texts and elements

    def _characters(self, text: str) -> None:
        self._open[-1].text += text

    def _lose(self, *_: str) -> None:
        self.loses = True

    def value(self, element: Element) -> Value:
        value: dict[str, Any] = dict(element.attributes)
        for each in element.inner:
            if each.name in element.attributes:
                raise DocumentError(f"an attribute and an element called {each.name}")
            if each.path in self.arrays:
                value.setdefault(each.name, []).append(self.value(each))
            else:
                value[each.name] = self.value(each)
        if not value:
            return element.text
        if element.text.strip():
            if _TEXT in value:
                raise DocumentError(f"an element with a text has a member {_TEXT}")
            value[_TEXT] = element.text
        return value


def _refuse_html_and_entities(name: str, _: str | None, _id: str | None, declares: bool) -> None:
    if declares or name.lower() == "html":
        raise DocumentError(f"a document of type {name}, which is a page or declares entities")


def _refuse_entity(name: str, _: bool) -> None:
    raise DocumentError(f"an XML entity {name} that is declared elsewhere")


def elements(text: str) -> Element:
    """Return the element around the root of an XML document. Raises DocumentError without one."""
    return _Reader().read(text)


def from_xml(text: str) -> tuple[bytes, bool]:
    """Return an XML document with rows as JSON; also True if JSON loses something of it.

    An element is an object of its attributes, the elements inside by their names and its `text`, or
    the text alone. Elements of a name that is repeated at their path are an array in all rows. Lost
    are comments, instructions, and where among elements a text stands.

    Raises DocumentError if the text is no XML, has no rows, or names that an object cannot have.
    """
    if len(text) > _LONGEST:
        raise DocumentError(f"{len(text)} characters of XML are more than {_LONGEST}")
    reader = _Reader()
    root = reader.read(text)
    if not reader.has_rows:
        raise DocumentError("XML without rows")
    return encode(reader.value(root)), reader.loses
