"""Regular expressions and JMESPath expressions as rule files hold them, checked when made."""

from collections.abc import Callable, Mapping
from typing import Any

from proxy.errors import AbridgeError, Refusal

_SHOWN = 60  # characters of a value that a message repeats


class PatternError(AbridgeError):
    """A regular or JMESPath expression that cannot be used."""


class Pattern:
    """A regular expression of the linear-time engine (RE2 syntax).

    >>> Pattern("^a+$").search("aaa") is not None
    True
    """

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        """Raise PatternError where `text` is no regular expression of that engine."""
        import re2

        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            reason = reason.decode() if isinstance(reason, bytes) else str(reason)
            raise PatternError(
                f"{text!r} is not a regular expression RE2 takes: {reason}"
            ) from None
        self.text = text

    @property
    def groups(self) -> tuple[str, ...]:
        r"""The names of its groups, in alphabetical order.

        >>> Pattern(r"(?P<done>\d+) of (?P<all>\d+)").groups
        ('all', 'done')
        """
        return tuple(sorted(self._compiled.groupindex))

    def search(self, subject: str, start: int = 0) -> Any:
        """Return the first match in `subject` that begins at `start` or later, or None."""
        return self._compiled.search(subject, start)

    def finditer(self, subject: str) -> Any:
        """Yield every match in `subject`."""
        return self._compiled.finditer(subject)

    def replace(self, subject: str, replacement: str) -> str:
        r"""Return `subject` with every match replaced; `\1` in the replacement is a group."""
        replaced: str = self._compiled.sub(replacement, subject)
        return replaced

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def __reduce__(self) -> tuple[type["Pattern"], tuple[str]]:
        return Pattern, (self.text,)


class Expression:
    """A JMESPath expression; `argument('name')` in it is the call's argument.

    >>> Expression("items[?n > `1`].n").search({"items": [{"n": 1}, {"n": 2}]})
    [2]
    """

    __slots__ = ("_parsed", "text")

    def __init__(self, text: str) -> None:
        """Raise PatternError where `text` is no JMESPath expression."""
        import warnings

        import jmespath
        import jmespath.exceptions

        try:
            with warnings.catch_warnings():
                # `text` in backticks without quotes is an older way to write 'text'; it works.
                warnings.simplefilter("ignore", PendingDeprecationWarning)
                self._parsed = jmespath.compile(text)
        except RecursionError:
            raise PatternError("nested too deeply") from None
        except jmespath.exceptions.JMESPathError as error:
            # The library repeats the expression, with a mark under it: one line does without both.
            reason = str(error).partition("\n")[0].rpartition("jmespath expression: ")[2]
            reason = reason.removesuffix(":").removesuffix(", for expression")
            advice = "; did you mean '=='?" if reason == "Unknown token '='" else ""
            said = f"{text!r} is not a JMESPath expression: {reason}{advice}"
            raise PatternError(said) from None
        self.text = text

    @property
    def tree(self) -> dict[str, Any]:
        """The parsed expression, as the jmespath library has it."""
        return dict(self._parsed.parsed)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The members of an object that the expression looks at; None where it may be any.

        >>> Expression("a.b && !c[0].d").names, Expression("length(@)").names
        (('a', 'c'), None)
        """
        try:
            names = _names(self.tree)
        except RecursionError:
            return None
        return None if None in names else tuple(name for name in names if name is not None)

    def bind(self, arguments: Mapping[str, Any]) -> Callable[[Any], Any]:
        """Return the function that evaluates this expression over plain values.

        The function raises Refusal where the expression does not fit the value (a wrong type, an
        unknown function); the message says why.
        """
        import jmespath
        import jmespath.functions
        from jmespath.visitor import TreeInterpreter

        class Functions(jmespath.functions.Functions):
            @jmespath.functions.signature({"types": ["string"]})
            def _func_argument(self, name: str) -> Any:
                return arguments.get(name)

        # One for all values: the library would make another one for each.
        interpreter = TreeInterpreter(jmespath.Options(custom_functions=Functions()))
        parsed = self._parsed.parsed

        def evaluate(value: Any) -> Any:
            try:
                return interpreter.visit(parsed, value)
            except Exception as error:
                # Not only JMESPathError: a slice by steps of 0 is a ValueError of Python's own, the
                # greatest of texts and numbers a TypeError.
                raise Refusal(_told(error)) from error

        return evaluate

    def search(self, value: Any) -> Any:
        """Evaluate once over a plain value, without arguments; see `bind`."""
        return self.bind({})(value)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.text,)


def _told(error: Exception) -> str:
    """Say what failed on one line; the library would repeat the value, which may be a document."""
    value = getattr(error, "current_value", None)
    if isinstance(value, dict | list):
        error.current_value = "an object" if isinstance(value, dict) else "an array"  # type: ignore[attr-defined]
    elif isinstance(value, str) and len(value) > _SHOWN:
        error.current_value = f"{value[:_SHOWN]}…"  # type: ignore[attr-defined]
    return " ".join(str(error).split())


# What the children of a node look at: all of them at the same value as the node, or only the
# first, and the others at what that one yields.
_ALONGSIDE = {
    "and_expression",
    "comparator",
    "function_expression",
    "key_val_pair",
    "multi_select_dict",
    "multi_select_list",
    "not_expression",
    "or_expression",
}
_IN_TURN = {
    "filter_projection",
    "flatten",
    "index_expression",
    "pipe",
    "projection",
    "subexpression",
    "value_projection",
}


def _names(node: dict[str, Any]) -> dict[str | None, None]:
    """Return the members that `node` looks at, in order; None among them for the whole value."""
    kind = node["type"]
    if kind == "field":
        return {node["value"]: None}
    if kind in ("literal", "expref"):
        return {}
    if kind in _ALONGSIDE:
        return {name: None for child in node["children"] for name in _names(child)}
    return _names(node["children"][0]) if kind in _IN_TURN else {None: None}


def truthy(value: Any) -> bool:
    """Say whether JMESPath takes `value` for true: all but null, false and what is empty."""
    return not (value is None or value is False or value == "" or value == [] or value == {})
