"""Evaluation of views: the part of a document that a model requests by the argument `view`.

A view is a JMESPath expression in which strings can be sliced too. It opens just the parts of the
document that it reads: values in its result keep the spelling of the upstream.
"""

import re
from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Raw

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.measure import (
    TextFrame,
    TextWriteback,
    exceeds,
    growth_limit,
    member,
    size,
    writeback_at,
)
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.own_names import unmarked
from mcp_abridge.document.paths import ROOT
from mcp_abridge.document.tree import LARGE, Document, Value, encode, opened
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.call import HELP, ROWS, asks_for
from mcp_abridge.query.ends import last_member, last_part, last_slice
from mcp_abridge.query.hits import Hits, first_hits
from mcp_abridge.query.keys import with_names
from mcp_abridge.query.lookups import Lookups
from mcp_abridge.query.patterns import Expression, PatternError, clipped
from mcp_abridge.query.spellings import quoted, respelled, translated, with_apostrophes
from mcp_abridge.query.trees import as_meant, members_named, renamed

_OF_ARRAYS = frozenset(("items", ROWS))  # names of an array in a shortened result
_OF_ROWS = re.compile(r"\s*@?\s*\[[?*]|\s*(?:\w+_by|unique|keys|entries)\(")
_GROUP_BY = re.compile(r"(?i)\bgroup\s+by\s+([\w.]+)\s*(?:;|$|order\b)")
_NOTHING: tuple[Any, ...] = (None, [], {}, 0, False)  # found by a condition that never holds
_LONGEST = 4000  # characters of an expression
_REPEATED = 100  # characters of an expression that takes too much work
_FEW = 400  # characters of an expression of which names are looked for in a document
_MEMBERS = 1000  # members of an object that are looked through for an array


def look(
    document: Document,
    expression: str,
    name: str = "text",
    fuel: Fuel | None = None,
    remarks: list[str] | None = None,
    examples: Callable[[], list[str]] = list,
    wholes: list[Value] | None = None,
    room: int = 0,
) -> Value:
    """Return the result of `expression` over `document`; null if there is none.

    A text is named `text`, and also `name`, the member of structuredContent that holds it; an array
    is also named `items`. A slice of an array at the end of the expression keeps nulls, so that
    slices can be joined. `remarks` receives the messages on members that no element has.
    `examples` gives views of this document for `help`. `wholes` receives the text or array of which
    a slice at the end of the expression is a part. `room` is for the rows of a few hits, in bytes.

    Raises Refusal, with the reason and an advice for the model.
    """
    if len(expression) > _LONGEST:
        raise Refusal(f"view: more than {_LONGEST} characters; {advice(document)}")
    if asks_for(HELP, expression):
        value = opened(document.cell[0])
        if not (isinstance(value, dict) and HELP in value):
            return usage(document, examples())
    expression = respelled(unmarked(expression, document.encode))
    fuel = fuel or Fuel()
    lookups = None
    try:
        parsed = _parsed(expression, document)
        content = cache(document.encode)
        as_names = with_names(parsed.tree, lambda name: encode(name) + b":" in content())
        lookups = Lookups(parsed)
        with uncollected() if _bytes_of(document) >= LARGE else nullcontext():
            result = _evaluate(document, parsed, name, fuel, lookups, wholes)
            if lookups.missing and (by_dots := _with_dots_in_names(parsed, document)):
                others = Lookups(by_dots)
                by_names = _evaluate(document, by_dots, name, fuel, others, wholes)
                if len(others.missing) < len(lookups.missing):
                    result, lookups = by_names, others
                    lookups.kinds.say(f"read as {clipped(by_dots.text)}")
        least = growth_limit(_bytes_of(document) // 4)  # quicker to tell than the size
        if exceeds(result, least, fuel) and exceeds(result, growth_limit(size(document)), fuel):
            reason = "gives far more than the whole document; narrow it"
            raise Refusal(f"view: {clipped(expression)!r} {reason}")
        several, slips = isinstance(result, list), lookups.slips
        nothing = all(each == [] for each in result) if several else result in _NOTHING
        if slips and (nothing or _is_of_nothing(result)):  # a slip must not read as "none"
            raise Refusal(f"view: {slips[0]}")
        if remarks is not None:
            about = slips or (lookups.absences if nothing else lookups.presumptions)
            remarks += dict.fromkeys([*about, *as_names, *lookups.remarks])
            remarks += [] if isinstance(result, Hits) else lookups.kinds.beside_hits
        return (
            first_hits(result, _searched(expression), room) if isinstance(result, Hits) else result
        )
    except OutOfFuel as error:
        part = f"{_example(document)} | ..."
        raise Refusal(
            f"view: {expression[:_REPEATED]!r} takes too much work; ask a part first, as in "
            f"{part}, or write a simpler pattern"
        ) from error
    except PatternError as error:
        groups = _groups(document, expression)
        raise Refusal(f"view: {error}; {groups or advice(document)}") from error
    except RecursionError as error:
        raise Refusal(f"view: nested too deeply; {advice(document)}") from error
    except (ValueError, TypeError, ArithmeticError) as error:
        # Errors that the jmespath library raises, its own classes included.
        from mcp_abridge.query.mistakes import beside_null, unsuitable

        reason = unsuitable(error)
        missing = [*lookups.slips, *lookups.absences] if lookups is not None else []
        reasons = [reason, *missing[:1]]
        if not missing and (way := beside_null(error)):
            reasons.append(way)
        if len(reasons) == 1 and ";" not in reason:  # which has an advice of its own
            reasons.append(advice(document))
        message = f"view: {clipped(expression)!r} fails: {'; '.join(reasons)}"
        raise Refusal(message) from error


def _is_of_nothing(result: Any) -> bool:
    """Return True of what functions make of a member that nothing has: null in one group, 0."""
    if isinstance(result, dict):
        return {*result} == {"null"} or all(each == 0 for each in result.values())
    return isinstance(result, list) and all(each is None for each in result)


def _bytes_of(document: Document) -> int:
    """Return the bytes of a document that is unopened, else 0."""
    value = document.cell[0]
    return len(memoryview(value)) if type(value) is Raw else 0


def _parsed(view: str, document: Document) -> Expression:
    """Return a view as an expression. Raises PatternError if no translation makes it one."""
    from mcp_abridge.query.functions import function_mistake  # loads the jmespath library

    def parsed(text: str) -> Expression:
        expression = Expression(text)
        if reason := function_mistake(expression):
            raise PatternError(f"{text!r} fails: {reason}")
        return expression

    try:
        return parsed(view)
    except PatternError:
        names = quoted(view, _names_of(document)) if len(view) <= _FEW else view
        quotes = with_apostrophes(names)
        for text in dict.fromkeys((names, translated(names), quotes, translated(quotes))):
            with suppress(PatternError):
                return parsed(text)
        raise


def _names_of(document: Document) -> Callable[[str], bool]:
    """Return a test for whether a document has a member of a name."""
    content = cache(document.encode)
    return lambda name: encode(name) + b":" in content()


def _with_dots_in_names(view: Expression, document: Document) -> Expression | None:
    """Return a view with double quotes around names that have a dot; None if there are none."""
    if len(view.text) > _FEW:
        return None
    text = quoted(view.text, _names_of(document), dots=True)
    return Expression(text) if text != view.text else None


def _evaluate(
    document: Document,
    expression: Expression,
    name: str,
    fuel: Fuel,
    lookups: Lookups,
    wholes: list[Value] | None,
) -> Value:
    from mcp_abridge.query.lazy import LazyInterpreter  # loads the jmespath library

    interpreter = LazyInterpreter(fuel, document, lookups)
    visit, open = interpreter.visit, interpreter.open
    whole = open(document.cell[0])
    # A view can also read a text that was parsed as structure as the text.
    closing = writeback_at(document, ROOT) or next(iter(document.closers), None)
    frame = None if closing is None else closing.frame
    if closing and closing.at.steps and frame and frame.loses:
        whole = open(_with_rows(document, closing, expression))
        closing = None
    elif closing and frame and _asks_for_text(expression, (name, "text"), frame, whole):
        document.close()
        if closing.at.steps:
            document.cell[0] = closing.sources[0][1]
        whole = open(document.cell[0])
    root, tree = whole, as_meant(expression.tree)
    if isinstance(whole, list):
        tree = renamed(tree, _OF_ARRAYS)
    elif isinstance(whole, str):
        of_text = renamed(tree, {"text", name})
        if members_named(of_text):
            root = {"text": whole, name: whole}  # which has no others, as is said then
        else:
            tree = of_text
    if closing is not None and frame is not None and frame.form and _is_search(tree):
        interpreter.search_in(closing.sources[0][1])
    parsed = lookups.corrected(tree, [root], open, fuel, single=True)
    interpreter.last_slice, interpreter.last_member = last_slice(parsed), last_member(parsed)
    interpreter.last_part = last_part(parsed)
    result = visit(parsed, root)
    while lookups.kinds.again():
        result = visit(parsed, root)
    if result is None and isinstance(whole, str):
        lookups.kinds.restart()
        result = visit(parsed, whole)
    if wholes is not None and interpreter.sliced is not None:
        wholes.append(interpreter.sliced)
    interpreter.close()
    return result


def _with_rows(document: Document, closing: TextWriteback, expression: Expression) -> Value:
    """Return an object with the text in it as it came; beside it are its rows if a view names them.

    A member of that name comes first.
    """
    slot = member(document.root, closing.at)
    rows = None if slot is None else slot.get()
    document.close()
    whole = opened(document.cell[0])
    if rows is not None and ROWS not in whole and ROWS in members_named(expression.tree):
        document.cell[0] = {**whole, ROWS: rows}
    return document.cell[0]


def _asks_for_text(
    expression: Expression, names: tuple[str, str], frame: TextFrame, whole: Value
) -> bool:
    """Return True if a view asks for the text that structure was read from, or for its lines.

    An object has no slices: if it has a member `text`, `[0:2000]` is its own text. If the structure
    loses something, only names, conditions and functions of structure ask for it.
    """
    if frame.loses:
        members = members_named(expression.tree)
        return not members.isdisjoint(names) or not (members or _OF_ROWS.match(expression.text))
    ways = []
    if not (isinstance(whole, dict) and "text" in whole):
        ways.append(rf"(?:\w+\(\s*)?(?:{'|'.join(map(re.escape, names))})\b")
    if isinstance(whole, dict):
        ways.append(r"@?\[[-\d\s]*:")
    if frame.form:  # else a rule has made lines or records of it
        ways.append(r"(?:head|tail|lines)\(")
    return bool(ways) and re.match(rf"\s*(?:{'|'.join(ways)})", expression.text) is not None


def _is_search(tree: dict[str, Any]) -> bool:
    return bool(tree["type"] == "function_expression" and tree["value"] == "grep")


def _searched(view: str) -> str:
    """Return the view before the search that ends a view."""
    return view[: view.rfind("grep(")].rstrip().removesuffix("|").rstrip()


def _groups(document: Document, view: str) -> str:
    """Return the count by a member that a view in SQL asks for, as the end of a sentence."""
    by, array = _GROUP_BY.search(view), _first_array(document)
    return f"for this result: count_by({array[0] or '@'}, &{by[1]})" if by and array else ""


def advice(document: Document) -> str:
    """Return an example of a valid view of this document, as the end of a sentence."""
    return f"write a JMESPath such as {_example(document)}, or help"


def _example(document: Document) -> str:
    array = None if document.textual else _first_array(document)
    if array is None:
        return "keys(@)" if _is_structure(document) else "text[0:2000]"
    return f"{array[0]}[0:20]"


def _is_structure(document: Document) -> bool:
    """Return False for a text, which may have a second form as structure."""
    closing = writeback_at(document, ROOT)
    loses = closing is not None and closing.whole is not None and closing.whole.loses
    return not (document.textual or loses)


def _plain(name: str) -> bool:
    return spelled(name) == name and nameable(name)


def _first_array(document: Document) -> tuple[str, list[Value]] | None:
    """Return the name and the elements of an array; the whole document has the name ""."""
    value = opened(document.cell[0])
    if isinstance(value, list):
        return "" if _is_structure(document) else "rows", value
    members = islice(value.items(), _MEMBERS) if isinstance(value, dict) else ()
    pairs = ((name, opened(member)) for name, member in members if _plain(name))
    return next((pair for pair in pairs if isinstance(pair[1], list) and pair[1]), None)


_USAGE = """\
A view is JMESPath on the result of this call, or one of these:
grep('pattern'), grep('pattern', 3): search, with lines of context; (?i) ignores case
head(20), tail(20), lines(100, 140): lines of a text; text[0:2000]: characters of it
outline(): headings of a text; members, kinds and sizes of structure
items[?state=='open'].[id, title]: filter; contains(title, 'x'), matches(title, '(?i)crash')
count_by(items, &state), group_by(items, &state), sum_by(items, &state, &n), max_by(items, &n), \
min_by(items, &n), sort_by(items, &n)[-5:], unique(items[].state), uniq(): lines with counts
length(items), sum(items[].n), items[0:20], keys(@), entries(@), values(@)
unnest(items, &tags): a row for each inner element; nodes(items, &children): one for each object \
of a tree; from_json(body), plain_text(doc): of rich \
text, split(a, ','), lower(a), to_number(a), capture(line, '(?P<word>\\w+)')
image(0, [x, y, width, height]): a part of an image in full; image(0), blob(0): a file as it came
Values may be piped: items[3].body | grep('fail'); $ is the whole result
For this result: """


def usage(document: Document, examples: Collection[str] = ()) -> str:
    """List the functions of views, with examples in the names of this document, if there are."""
    others = ["tail(40)", "grep('(?i)error')"] if document.textual else ["outline()"]
    return _USAGE + " or ".join(examples or [*others, _example(document)][:2])
