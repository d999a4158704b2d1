"""Views in the language of jq, whose streams become arrays.

Without it, brackets around a stream, as in `[.[] | select(.open)] | length`, are an array of one
array, and `{…}` after a pipe has columns in place of rows.
"""

import re
from collections.abc import Iterator

_SIGN = re.compile(
    r"^\s*(?:\.(?!\.)|map\(\s*(?:select\(|[.{\[]))|(?<![\w\]).?*\ue000-\uf8ff])\[\s*\."
)
_TOKEN = re.compile(r"\|\||\[ ?\]|[^|\[\](){},]+|.", re.DOTALL)
_PATH = re.compile(r"\.[^\s(),|{}<>=!+*/;]*")
_AFTER_A_VALUE = re.compile(r"[\w\]).?*\ue000-\uf8ff]$")
_MOST = 20  # objects, and calls of map: each of them is read by itself
_CALLS = ("keys", "length", "max", "min", "reverse", "sort", "unique")
_WORDS = {each: f"{each}(@)" for each in _CALLS} | {
    "add": "sum(@)",
    "ascii_downcase": "lower(@)",
    "first": "[0]",
    "flatten": "[]",
    "fromjson": "from_json(@)",
    "last": "[-1]",
    "to_entries": "entries(@)",
    "tonumber": "to_number(@)",
    "tostring": "to_string(@)",
}

_OF_RESULT = re.compile(rf"(?<=\|)\s*({'|'.join(_WORDS)})\[\]")

_OF_FIRST = r"[^,:{}]+:\s*\(?\s*\.?\[0\]\.(?P=by)\s*\)?"
_LENGTH = r"[^,:{}]+:\s*\(?\s*(?:\.\s*\|\s*)?length(?:\(@?\))?\s*\)?"
_SUM = r"[^,:{}]+:\s*\(?\s*map\(\s*\.(?P<NAME>[\w.]+)\s*\)\s*\|\s*add\s*\)?"
_COUNTS = re.compile(
    r"\bgroup_by\(\s*(?:(?P<of>[\w.@\[\]]+)\s*,\s*)?[&.]?(?P<by>[\w.]+)\s*\)\s*\|\s*map\(\s*\{\s*"
    rf"(?:{_OF_FIRST}\s*,\s*(?:{_LENGTH}|{_SUM.replace('NAME', 'last')})"
    rf"|(?:{_LENGTH}|{_SUM.replace('NAME', 'first')})\s*,\s*{_OF_FIRST})\s*\}}\s*\)"
)
"""Groups of which each is an object of its value and of a count, or a sum."""


def from_jq(view: str) -> str:
    """Return a view of jq, whose texts are masked, with its pipes as JMESPath has them.

    What stands in its stages stays as it is, and so does a view with no sign of jq.

    >>> from_jq("[.[] | select(.a > 1) | {id}] | length"), from_jq(". | length")
    ('([?.a > 1].{id: id}) | length(@)', 'length(@)')
    >>> from_jq(".items[] | [.id, .tags[0]]"), from_jq("[.items[].closed] | unique")
    ('items[*].[.id, .tags[0]]', '(map(&closed, items[*])) | unique(@)')
    >>> from_jq("map(.n) | add"), from_jq("[.a, .b]")
    ('map(&n, [*]) | sum(@)', '[.a, .b]')
    >>> from_jq("group_by(.k) | map({k: .[0].k, n: length})")
    'count_by(@, &k)'
    """
    view = _COUNTS.sub(_counts, view)
    if not _SIGN.search(view) or view.count("map(") + view.count("{") > _MOST:
        return view
    return _piped(_arrays(_OF_RESULT.sub(r" \1 | .[]", view)))


def _counts(match: re.Match[str]) -> str:
    amount = match["first"] or match["last"]
    of = f", &{amount}" if amount else ""
    return f"{'sum' if amount else 'count'}_by({match['of'] or '@'}, &{match['by']}{of})"


def _arrays(view: str) -> str:
    """Return a view with parentheses in place of brackets around a stream, which is an array."""
    outer, text = list[str](), ""
    for part in re.split(r"([\[\]])", view):
        if part == "[":
            outer.append(text)
            text = ""
        elif part == "]" and outer:
            before = outer.pop()
            collects = _is_stream(text) and not _AFTER_A_VALUE.search(before)
            text = before + (f"({_piped(text, collects=True)})" if collects else f"[{text}]")
        else:
            text += part
    return "[".join([*outer, text])


def _is_stream(text: str) -> bool:
    """Return True for what gives several values: a path with `[]` in it, alone or in a pipe."""
    if not text.lstrip().startswith("."):
        return False
    tokens = [token for token, depth in _tokens(text) if depth == 0]
    return "[]" in tokens and ("," not in tokens or "|" in tokens)


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield the signs of a view and what is between them, each with the brackets around it."""
    depth = 0
    for token in _TOKEN.findall(text.replace("[ ]", "[]")):
        depth -= token in (")", "]", "}")
        yield token, depth
        depth += token in ("(", "[", "{")


def _split(text: str, sign: str) -> list[str]:
    """Return the parts of a text between signs that stand in no brackets."""
    parts = [""]
    for token, depth in _tokens(text):
        if (token, depth) == (sign, 0):
            parts.append("")
        else:
            parts[-1] += token
    return [*map(str.strip, parts)]


def _piped(text: str, whole: str = "", *, collects: bool = False) -> str:
    """Return the stages of a pipe one after the other; `whole` is a stream for the first one.

    `collects`: the values of the stream are put into an array, and null is one of them.
    """
    streams = bool(whole)
    for stage in map(_with_names, _split(text, "|")):
        pipe = f"{whole} | " if whole not in ("", "@") else ""
        if streams:
            whole = _of_each(whole, stage, collects)
        elif _PATH.fullmatch(stage) and "[]" in stage:
            first, _, rest = stage.partition("[]")
            whole, streams = f"{pipe}{_elements(first)}", True
            whole = _of_each(whole, f".{rest}".replace("..", "."), collects)
        elif (inside := _argument("map", stage)) is not None:
            array = _elements(whole) if _PATH.fullmatch(whole) else f"{pipe}[*]"
            whole = _piped(inside, array, collects=True)
        else:
            whole = pipe + ("@" if stage == "." else _WORDS.get(stage, stage))
    return whole


def _elements(path: str) -> str:
    """Return the elements of an array, which is one itself if a slice gave it."""
    return f"{path.removeprefix('.')}{' | ' * (':' in path)}[*]"


def _of_each(array: str, stage: str, collects: bool) -> str:
    """Return the array of the results of one stage of a pipe, applied to each element."""
    condition, ends = _argument("select", stage), array.endswith("]")
    if condition is not None:
        plain = array.removesuffix("[*]")
        return f"{plain if plain != array else f'{array} | '}[?{condition}]"
    if _PATH.fullmatch(stage):
        *arrays, last = stage.replace("?", "").split("[]")
        for each in arrays:
            array = f"{array if ends else f'{array} | [*]'}{each.rstrip('.')}[]"
        last = last.removeprefix(".")
        if collects and last:
            return f"map(&{last}, {array})"
        return f"{array}{'.' * (last[:1] != '[')}{last}" if last else array
    if len(_split(stage, ",")) > 1:
        # Of an array of both in turn, which jq makes, there is no JMESPath: it is refused.
        stage = f"({stage})" if collects else f"[{stage}]"
    if stage[:1] in ("[", "{"):
        return f"{array if ends else f'{array} | [*]'}.{stage}"
    stage = _WORDS.get(stage, stage)
    if stage.startswith("("):
        return f"map(&{stage}, {array})"
    return f"map(&(@ | {stage}), {array})" if collects else f"{array} | {stage}"


def _with_names(stage: str) -> str:
    """Return an object in which each member has its name, as in `{id: id}`, and others as is."""
    if not (stage.startswith("{") and stage.endswith("}")):
        return stage
    members = (part.partition(":") for part in _split(stage[1:-1], ","))
    texts = (f"{name}: {_piped(value) if sign else name}" for name, sign, value in members)
    return f"{{{', '.join(texts)}}}"


def _argument(name: str, stage: str) -> str | None:
    """Return the one argument of a call; None if the stage is none, or has several."""
    if not (stage.startswith(f"{name}(") and stage.endswith(")")):
        return None
    inside = stage[len(name) + 1 : -1]
    one = len(_split(inside, ",")) == 1 and all(depth >= 0 for _, depth in _tokens(inside))
    return inside if one and not inside.lstrip().startswith("&") else None
