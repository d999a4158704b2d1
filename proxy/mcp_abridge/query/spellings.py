"""Views as they are written by who knows jq, JSONPath, Python or a shell, put into JMESPath.

Without it, each such view costs a model a second call.
"""

import re
from collections.abc import Callable

from mcp_abridge.document.names import spelled
from mcp_abridge.query.jq import from_jq
from mcp_abridge.query.literals import SIGN as _LITERAL
from mcp_abridge.query.literals import masked, raw_text, unmasked
from mcp_abridge.query.shell import from_shell

_PATH = r"[A-Za-z_@][\w.]*"
_INSIDE = r"((?:[^()]|\([^()]*\))*)"  # what stands in parentheses
_BY = "(?:(?:sort|max|min|count|group|sum)_by|unnest|nodes)"
_TEST = "contains|starts_with|ends_with|matches"
_FUNCTIONS = {
    "len": "length",
    "count": "length",
    "size": "length",
    "distinct": "unique",
    "mean": "avg",
    "average": "avg",
    "startswith": "starts_with",
    "startsWith": "starts_with",
    "endswith": "ends_with",
    "endsWith": "ends_with",
    "includes": "contains",
    "search": "grep",
    "find": "grep",
    "to_entries": "entries",
    "tostring": "to_string",
    "tonumber": "to_number",
    "test": "matches",
    "fromjson": "from_json",
    "parse_json": "from_json",
    "JSON.parse": "from_json",
    "json.loads": "from_json",
    "ascii_downcase": "lower",
    "downcase": "lower",
    "lowercase": "lower",
    "tolower": "lower",
    "toLowerCase": "lower",
    "explode": "unnest",
    "unwind": "unnest",
    "recurse": "nodes",
    "descendants": "nodes",
    "walk": "nodes",
    "text_of": "plain_text",
    "textContent": "plain_text",
    "to_text": "plain_text",
    "extract": "capture",
    "countBy": "count_by",
    "value_counts": "count_by",
    "groupBy": "group_by",
    "sumBy": "sum_by",
    "maxBy": "max_by",
    "minBy": "min_by",
    "sortBy": "sort_by",
}


def _matching(match: re.Match[str]) -> str:
    return f"{'!' * (match[2] == '!~')}matches({match[1]}, {match[3]})"


def _is(match: re.Match[str]) -> str:
    word = _WORDS.get(match[3], match[3]).lower()
    return f"{match[1]} {'!' if match[2] else '='}= `{word}`"


def _indexes(numbers: str) -> str:
    """Return the elements of each row that are asked for: `[2], [3]`."""
    return ", ".join(f"[{each.strip()}]" for each in numbers.split(","))


_Replacement = str | Callable[[re.Match[str]], str]
_TABLE: tuple[tuple[str, _Replacement], ...] = (
    # Functions by the names of other languages, or with an argument too few.
    (r"(?i)\bcount\(\s*\*\s*\)", "length(@)"),
    (rf"\b(sort|max|min|count|group)\(\s*({_PATH})\s*,", r"\1_by(\2,"),
    (
        r"(?<![\w.])([A-Za-z_@][\w.\[\]]*)\.(lower|toLowerCase|plain_text)\(\s*\)",
        lambda match: f"{_FUNCTIONS.get(match[2], match[2])}({match[1]})",
    ),
    (rf"(?<![\w.])([A-Za-z_@][\w.\[\]]*)\.split\(\s*({_LITERAL})\s*\)", r"split(\1, \2)"),
    (
        r"\|\s*(fromjson|from_json|ascii_downcase|lower|plain_text|tonumber|tostring)(?![\w(])",
        lambda match: f"| {_FUNCTIONS.get(match[1], match[1])}(@)",
    ),
    (rf"\|\s*(split|capture|test|matches)\(\s*({_LITERAL})\s*\)", r"| \1(@, \2)"),
    (rf"\|\s*join\(\s*({_LITERAL})\s*\)", r"| join(\1, @)"),
    (r"\buniq\((?!\s*\))", "unique("),
    (
        rf"\b({'|'.join(map(re.escape, _FUNCTIONS))})\(",
        lambda match: f"{_FUNCTIONS[match[1]]}(",
    ),
    (r"^(length|keys|values|unique|sort|reverse|sum|max|min|avg)\(\s*\)", r"\1(@)"),
    (r"\s*[.|]\s*(length|keys|values|unique|sort|reverse|sum|max|min|avg)\(\s*\)", r" | \1(@)"),
    (rf"(?<![\w.])({_PATH})\.({_TEST})\(\s*({_LITERAL})\s*\)", r"\2(\1, \3)"),
    (rf"\b({_TEST})\(\s*({_LITERAL})\s*\)", r"\1(@, \2)"),
    (rf"(?<![\w.])({_PATH})\s*(=~|!~)\s*({_LITERAL})", _matching),
    (rf"\b(sum|avg)_by\(\s*({_PATH})\s*,\s*&?\.?({_PATH})\s*\)", r"\1(\2[].\3)"),
    (rf"\b({_BY})\(\s*[&.]?({_PATH})\s*\)", r"\1(@, &\2)"),
    (rf"\b({_BY}\([^,()&]+,\s*)\.?(?=[A-Za-z_]|{_LITERAL})", r"\1&"),
    (rf"\b(sum_by\([^,()]+,[^,()]+,\s*)\.?(?=[A-Za-z_]|{_LITERAL})", r"\1&"),
    (rf"\b(head|tail)\(\s*({_PATH})\s*,\s*({_LITERAL})\s*\)", r"\2 | \1(\3)"),
    # jq
    (r"(?<=[\w\])])\?(?=\s*(?:[.|)]|$))", ""),
    (r"(?<=[A-Za-z_\])])\.(\d+)\b", r"[\1]"),
    (rf"(?<![\w.])(\.?{_PATH})\s*\|\s*not\b(?!\()", r"!(\1)"),
    (
        rf"(?:\[\*?\])?\s*\|\s*(?:map\(\s*select\({_INSIDE}\)\s*\)|select\({_INSIDE}\))",
        lambda match: f"[?{match[1] or match[2]}]",
    ),
    (r"(?<=\))\s*\|\s*\.(?=\[)", " | "),  # of the array that a function gives
    (r"\s*\|\s*\.(?=\[)", ""),
    (rf"(?:\[\*?\])?\s*\|\s*map\(\s*\.({_PATH})\s*\)", r"[*].\1"),
    (rf"\bmap\(\s*[&.]?({_PATH})\s*,\s*\.?({_PATH})\s*\)", r"map(&\1, \2)"),
    (r"\s*\|\s*\.(?=[A-Za-z_])", "."),
    (rf"(?<![\w@\]).*\ue000-\uf8ff])\.(?=[A-Za-z_\[]|{_LITERAL})", ""),
    # Python, SQL, JavaScript
    (r"===|(?<=!)==", lambda match: match[0][1:]),
    (r"<>", "!="),
    (
        rf"(?<![\w.])({_PATH})\s+(?:is|IS)\s+(not\s+|NOT\s+)?({_LITERAL}|null|NULL|None|true|false)\b",
        _is,
    ),
    (
        rf"(?<![\w.])({_PATH})\s+(?:between|BETWEEN)\s+({_LITERAL})\s+(?:and|AND)\s+({_LITERAL})",
        r"\1 >= \2 && \1 <= \3",
    ),
    (r"(?<=\s)(?:and|AND)(?=\s)", "&&"),
    (r"(?<=\s)(?:or|OR)(?=\s)", "||"),
    (rf"(?<![\w.])({_PATH})\s+(?:not|NOT)\s+(?=(?:in|IN)\s*[\[(])", r"!\1 "),
    (r"\bnot(?:\s+(?=[\w(])|(?=\())", "!"),
    (rf"({_LITERAL})\s+in\s+({_PATH})", r"contains(\2, \1)"),
    (rf"(?<![\w.])({_PATH})\s+({_TEST})\s+({_LITERAL})", r"\2(\1, \3)"),
    (
        rf"(?<![\w.])({_PATH})\s+(?:in|IN)\s*[\[(]\s*({_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*[\])]",
        r"contains([\2], \1)",
    ),
    (rf"\b(first|last)\(\s*({_PATH})\s*\)", lambda m: f"{m[2]}[{-(m[1] == 'last')}]"),
    (rf"\bcontext\s*=\s*(?={_LITERAL})", ""),
    (r"(?<![=!<>~])=(?![=~>])", "=="),
    (rf"(?<=\w)\[(?=\s*!?\s*(?:{_PATH}\s*(?:[=!]=|[<>])|(?:{_TEST})\())", "[?"),
    (rf"(?<=\w)\[(?=\s*{_PATH}\s*(?:,\s*{_PATH}\s*)*\])", "[*].["),
    (rf"(?<=\])\[(?=\s*{_PATH}\s*(?:,\s*{_PATH}\s*)*\])", ".["),
)

_ROOT = re.compile(r"^\$(?=\.\w|\[)\.?|^\.(?=\w)")
_FIRST_MEMBER = re.compile(r"""^\$\[(["'])([^"'`\\\]]+)\1\]""")
_KEPT = re.compile(r"""'(?:[^'\\]|\\.)*'|`[^`]*`|"(?:[^"\\]|\\.)*\"""")
_BARE_NUMBER = re.compile(
    r"((?:[(,]|[<>=]=?|!=|\b(?:between|and|BETWEEN|AND)\b)\s*)(-?\d+(?:\.\d+)?)\b"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBERS = re.compile(
    rf"(?:\b(?:in|IN)|[(=])\s*\[\s*{_NUMBER.pattern}(?:\s*,\s*{_NUMBER.pattern})+\s*\]"
)
_NUMBER_BEFORE = re.compile(r"(?<![\w.:\[+-])(-?\d+(?:\.\d+)?)(\s*(?:[<>=]=?|!=))")
_BARE_WORD = re.compile(r"([=!]=\s*)([Tt]rue|[Ff]alse|null|None|nil|undefined)\b")
_WORDS = {"True": "true", "False": "false"} | dict.fromkeys(("None", "nil", "undefined"), "null")
_EMPTY = re.compile(r"([=!]=\s*)(\[ ?\]|\{ ?\})(?!\s*[\w.\[])")
_INDEXES = re.compile(r"\.\[\s*(\d+\s*(?:,\s*\d+\s*)+)\]")
_DOTTED_INDEX = re.compile(r"(?<=[\w\])*])\.\[(?=\s*(?:-?\d+\s*\]|-?\d*\s*:))")
_BARE_MEMBERS = re.compile(r"\{(\s*[\w.]+(?:\s*,\s*[\w.]+)*\s*)\}")
_QUOTED_PATTERN = re.compile(
    r"""(\b(?:grep|join|test)\(\s*|\b(?:matches|test|capture)\(\s*[\w.@]+\s*,\s*"""
    r"""|\bsplit\(\s*(?="(?:[^"\\]|\\.)*"\s*\)))"""
    r""""((?:[^"\\]|\\.)*)\"(\s*;\s*"\w*i\w*")?"""
)
_QUOTED_MEMBER = re.compile(
    r"""(?<=[\w\])])(?:\[\s*(?P<in>["'])(?P<name>[^"'`\\\]]+)(?P=in)\s*\]|\.'(?P<after>[^"'`\\]+)')"""
)
_LIKE = re.compile(
    rf"(?<![\w.])({_PATH})\s+(NOT\s+)?(I?)LIKE\s+'(%?)([^'%_\\]+)(%?)'", re.IGNORECASE
)
_MAY_BE_NAMES = re.compile(r"[^\[\]{},&|=<>!?*'\"`\ue000-\uf8ff]+")  # and what is between them
_WORD_OR_SIGN = re.compile(r"\w+|\W")
_ATTEMPTS = 100  # names that are looked for in a document
_ODD = re.compile(
    r"(?=.*[^\W\d])(?=\d|.*(?:[^\w.]|[^\x00-\x7f]))"
)  # a letter, and a sign or first a digit
_ODD_NUMBER = re.compile(r"(?=.*\d)(?=.*[^\w.])")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")


def respelled(view: str) -> str:
    """Return a view in the spelling of JMESPath, if it has what JMESPath never takes.

    Each of these is an error in JMESPath, so that no valid view gets another meaning.
    """
    view = _FIRST_MEMBER.sub(lambda match: spelled(match[2]), view.strip())
    if command := from_shell(_ROOT.sub("", view)):
        return command
    view = _QUOTED_PATTERN.sub(
        lambda match: f"{match[1]}{raw_text('(?i)' * bool(match[3]) + match[2])}", view
    )
    view, literals = _masked(view)
    view = _ROOT.sub("", from_jq(view))
    view = _INDEXES.sub(lambda match: f".[{_indexes(match[1])}]", view)
    view = _NUMBERS.sub(lambda match: _NUMBER.sub(r"`\g<0>`", match[0]), view)
    view = _BARE_NUMBER.sub(r"\1`\2`", view)
    view = _NUMBER_BEFORE.sub(r"`\1`\2", view)
    view = _BARE_WORD.sub(lambda match: f"{match[1]}`{_WORDS.get(match[2], match[2])}`", view)
    view = _EMPTY.sub(r"\1`\2`", view)
    view = _DOTTED_INDEX.sub("[", view)
    return unmasked(_BARE_MEMBERS.sub(lambda match: _hash(match[1]), view), literals)


def translated(view: str) -> str:
    """Return a view that is no JMESPath as the one that another language seems to mean."""
    view = _LIKE.sub(_like, _QUOTED_MEMBER.sub(r'."\g<name>\g<after>"', view))
    view, literals = _masked(view)
    for pattern, replacement in _TABLE:
        view = re.sub(pattern, replacement, view)
    return unmasked(view, literals)


def quoted(view: str, exists: Callable[[str], bool], *, dots: bool = False) -> str:
    """Return a view with names that need double quotes in them, if there are such members.

    `dots`: a name may be a path of plain names, too.

    >>> quoted("[?a.x-y > b.c/d].z-z", {"x-y", "b.c/d"}.__contains__)
    '[?a."x-y" > "b.c/d"].z-z'
    >>> quoted("max_by(a, &Due (UTC)).2026-11-30", {"Due (UTC)", "2026-11-30"}.__contains__)
    'max_by(a, &"Due (UTC)")."2026-11-30"'
    >>> quoted("[?a.log.level]", {"log.level"}.__contains__, dots=True)
    '[?a."log.level"]'
    """
    attempts = iter(range(_ATTEMPTS))

    def is_name(text: str, before: str) -> bool:
        odd = _ODD.match(text) or (before == "." and _ODD_NUMBER.match(text))
        fits = odd or (dots and "." in text)
        whole = text[0] not in " ." and text[-1] != " " and text.count("(") == text.count(")")
        return bool(fits) and whole and next(attempts, None) is not None and exists(text)

    def spelled_parts(match: re.Match[str]) -> str:
        names, start, text = list[str](), 0, match[0]
        ends = [word.end() for word in _WORD_OR_SIGN.finditer(text)]
        while ends:
            before, longest_first = text[start - 1 : start], reversed(ends)
            end = next((end for end in longest_first if is_name(text[start:end], before)), 0)
            names.append(spelled(text[start:end]) if end else text[start : ends[0]])
            start = end or ends[0]
            ends = [end for end in ends if end > start]
        return "".join(names)

    view, literals = _masked(view)
    return unmasked(_MAY_BE_NAMES.sub(spelled_parts, view), literals)


def _like(match: re.Match[str]) -> str:
    name, other, any_case, before, text, after = match.groups()
    sign = "!" if other else ""
    if any_case:
        start, end = "" if before else "^", "" if after else "$"
        return f"{sign}matches({name}, '(?i){start}{re.escape(text)}{end}')"
    test = "contains" if before and after else "ends_with" if before else "starts_with"
    exact = f"{name}{sign or '='}='{text}'"
    return f"{sign}{test}({name}, '{text}')" if before or after else exact


def with_apostrophes(view: str) -> str:
    r"""Return a view in which each quote between two letters is part of a text.

    >>> print(with_apostrophes("grep('Cobbler's Loaf')"))
    grep('Cobbler\'s Loaf')
    """
    return _APOSTROPHE.sub(r"\\'", view)


def _masked(view: str) -> tuple[str, dict[str, str]]:
    view, literals = masked(view, _KEPT)
    return re.sub(r"\s+", " ", view), literals  # long whitespace would take quadratic time


def _hash(members: str) -> str:
    """Return `{a: a, c: b.c}` for `a, b.c`."""
    paths = [path.strip() for path in members.split(",")]
    return "{" + ", ".join(f"{path.rpartition('.')[2]}: {path}" for path in paths) + "}"
