"""Words for what is wrong with an expression: the library's errors as its author would put them.

Without it, a model reads `found str` and `token "" (EOF)`, the words of Python and of a parser.
"""

import re

from jmespath.exceptions import IncompleteExpressionError, JMESPathTypeError, LexerError, ParseError

from mcp_abridge.document.own_names import server_name
from mcp_abridge.query.shapes import is_array

_PAIRS = (("[", "]"), ("{", "}"), ("(", ")"))
_SIGNS = re.compile(r"[\w$@#/:.-]*\w[\w$@#/:.-]*")  # a name that is written without its quotes
_NAMED = re.compile(r"[^.]*[$@#/:\x80-\U0010ffff-][^.]*")
_ELEMENT = re.compile(r"\.\[(?=\s*-?\d+\s*\])")
# What other languages write between two operands, or first.
_OPERATORS = {
    "in": "contains(['a', 'b'], state)",
    "like": "contains(name, 'x') or matches(name, '^x')",
    "~": "matches(name, '^x')",
    "between": "n >= `3` && n <= `5`",
    "is": "state == null",
    "for": "items[?n > `3`].id",
    "=>": "items[?n > `3`].id",
    "select": "items[?state=='open'].[id, title], or count_by(items, &state)",
}
_SHOWN = 60  # characters of an expression that an advice repeats
_DEFAULTS = {"length": "''", "keys": "`{}`", "values": "`{}`"}  # in place of null
_KINDS = {
    "string": "a text",
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "number": "a number",
    "bool": "a boolean",
    "boolean": "a boolean",
    "list": "an array",
    "array": "an array",
    "dict": "an object",
    "object": "an object",
    "nonetype": "null",
    "array-number": "an array of numbers",
    "array-string": "an array of texts",
    "expref": "an expression, written &name",
}


def unreadable(text: str, error: ParseError) -> str:
    """Return why the library cannot read an expression, where, and what may be meant.

    >>> from mcp_abridge.query.patterns import Expression, PatternError
    >>> for text in ("a[0", "a.x-y", "a.[1]", "a == 5"):
    ...     try:
    ...         Expression(text)
    ...     except PatternError as error:
    ...         print(error)
    'a[0' is not a JMESPath expression: it ends too early; '[' is not closed
    'a.x-y' is not a JMESPath expression: '-' at column 4; a name with signs stands in double \
quotes: "x-y"
    'a.[1]' is not a JMESPath expression: '1' at column 4; an element follows without a dot: a[1]
    'a == 5' is not a JMESPath expression: '5' at column 6; a number stands in backticks, such as \
`5`
    """
    if isinstance(error, IncompleteExpressionError) or error.token_type == "EOF":
        unclosed = (f"; {a!r} is not closed" for a, b in _PAIRS if text.count(a) > text.count(b))
        return "it ends too early" + next(unclosed, "")
    at = error.lex_position
    token = str(error.token_value)[:_SHOWN]
    if isinstance(error, LexerError) and "nclosed" in error.message:
        return f"{text[at]!r} at column {at + 1} is not closed"
    return f"{token!r} at column {at + 1}{_advice(text, at, error)}"


def _advice(text: str, at: int, error: ParseError) -> str:
    first, sign = text.split(None, 1)[0].lower(), "=>" if text[at : at + 2] == "=>" else text[at]
    for each in (first if first == "select" else "", sign, str(error.token_value).lower()):
        if each in _OPERATORS:
            return f"; there is no {each!r} here: write {_OPERATORS[each]}"
    if ".." in text[max(at - 1, 0) : at + 2]:
        return "; '..' for all levels is unknown: outline() lists what is there"
    if isinstance(error, LexerError) and text[at] == "=":
        return "; did you mean '=='?"
    if error.token_type == "NUMBER" and not re.match(r"\w-", text[at - 1 : at + 1]):
        if _ELEMENT.search(text, max(0, at - _SHOWN), at + _SHOWN) and len(text) <= _SHOWN:
            return f"; an element follows without a dot: {_ELEMENT.sub('[', text)}"
        return "; a number stands in backticks, such as `5`"
    near = _SIGNS.finditer(text, max(0, at - _SHOWN), at + _SHOWN)
    word = next((each for each in near if each.start() <= at < each.end()), None)
    name = word and next(
        (each for each in _NAMED.finditer(word[0]) if word.start() + each.end() > at), None
    )
    if name and len(name[0]) <= _SHOWN:
        return f'; a name with signs stands in double quotes: "{name[0]}"'
    return ""


def unsuitable(error: Exception) -> str:
    """Return why an expression fails on a value, in one line and without the value."""
    if isinstance(error, JMESPathTypeError):
        takes = " or ".join(map(_kind, error.expected_types))
        rows = takes == "an array" and _kind(error.actual_type) == "an object"
        way = "; write values() of it, or entries() for rows with key and value" * rows
        value = error.current_value
        arrays = [name for name, each in value.items() if is_array(each)] if rows else []
        way = f"; its array is {server_name(arrays[0])}" if len(arrays) == 1 else way
        return f"{error.function_name}() takes {takes}, found {_kind(error.actual_type)}{way}"
    if "slice step" in str(error):
        return "the step of a slice cannot be 0"
    if isinstance(error, ArithmeticError):
        return "a number is too large"
    return "it does not fit the values"


def beside_null(error: Exception) -> str:
    """Return how a function is written whose argument may be null, "" of other errors."""
    if not isinstance(error, JMESPathTypeError) or _kind(error.actual_type) != "null":
        return ""
    name, default = error.function_name, _DEFAULTS.get(error.function_name)
    return f"for what may be null write {name}(name || {default})" if default else ""


def _kind(name: str) -> str:
    return _KINDS.get(name.lower(), name)
