"""Makes results from templates: the same on each run, and described where their questions are.

A text in a template may have expressions in braces, such as `{int 1 9}`; what is no known one stays
as it is. An object with `repeat` and `of` is an array of so many, with `map`, `key` and `of` an
object; `at` changes single elements, of an object pairs of a key and a value. An object with
nothing but `one_of` is one of some templates; `{@a.b}` is what a member around has already.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.answers.dice import Dice, clock

_EXPRESSION = re.compile(r"\{([@a-z]\w*)([^{}:]*)(?::([<>]\d+))?\}")
_STEP = re.compile(r"\*|\[\]|\[(\w+)=([^\]]+)\]|\[(\d+)\]|[^.\[\]*]+")
_PLAIN: dict[str, Any] = {"null": None, "true": True, "false": False, "": ""}

Words = Mapping[str, Sequence[Any]]


class Maker:
    """Fills templates; `words` are named lists, of which `{name}` picks one."""

    def __init__(self, seed: str, words: Words) -> None:
        self._dice, self._words = Dice(seed), words
        self._counts: list[int] = []
        self._objects: list[dict[str, Any]] = []

    def fill(self, template: Any) -> Any:
        """Return a value as its template says.

        >>> maker = Maker("seed", {"city": ["Oslo"]})
        >>> maker.fill({"repeat": 2, "of": {"id": "{n+7}", "in": "{city}"}, "at": {1: {"id": 0}}})
        [{'id': 7, 'in': 'Oslo'}, {'id': 0, 'in': 'Oslo'}]
        >>> maker.fill(["{n}", "{unknown}", "{int 3 3:>4}"])
        ['{n}', '{unknown}', '   3']
        >>> maker.fill({"a": {"b": 1}, "same": "{@a.b}", "other": {"one_of": [2]}})
        {'a': {'b': 1}, 'same': 1, 'other': 2}
        """
        if isinstance(template, str):
            return self._text(template)
        if isinstance(template, list):
            return [self.fill(each) for each in template]
        if not isinstance(template, dict):
            return template
        if {"repeat", "of"} <= template.keys():
            return [self._element(template, n) for n in range(self.fill(template["repeat"]))]
        if template.keys() == {"one_of"}:
            return self.fill(self._dice.pick(template["one_of"]))
        if {"map", "key", "of"} <= template.keys():
            pair = {**template, "of": [template["key"], template["of"]]}
            pairs = [self._element(pair, n) for n in range(template["map"])]
            return {str(key): value for key, value in pairs}
        members: dict[str, Any] = {}
        self._objects.append(members)
        for name, each in template.items():
            members[name] = self.fill(each)
        self._objects.pop()
        return members

    def _element(self, template: dict[str, Any], n: int) -> Any:
        self._counts.append(n)
        element = self.fill(template["of"])
        if n in template.get("at", {}):
            element = _changed(element, self.fill(template["at"][n]))
        self._counts.pop()
        return element

    def _text(self, template: str) -> Any:
        whole = _EXPRESSION.fullmatch(template)
        if whole and not whole[3]:
            return self._value(whole)
        return _EXPRESSION.sub(lambda match: _spelled(self._value(match), match[3]), template)

    def _value(self, match: re.Match[str]) -> Any:
        name, argument, dice = match[1], match[2].strip(), self._dice
        if name[0] == "@":
            around = next((each for each in self._objects[::-1] if name[1:] in each), None)
            return at_path(around, f"{name[1:]}{argument}")[0] if around else ""
        if name in self._words:
            return dice.pick(self._words[name])
        if name in ("n", "o") and len(self._counts) > (name == "o"):
            factor, plus = re.fullmatch(r"(?:\*(\d+))?(?:\+(\d+))?", argument).groups()  # type: ignore[union-attr]
            return self._counts[-1 - (name == "o")] * int(factor or 1) + int(plus or 0)
        make = _KINDS.get(name)
        return make(dice, argument, self._counts) if make else match[0]


def _pick(dice: Dice, argument: str, _: object) -> Any:
    choice = dice.pick(argument.split("|"))
    return int(choice) if choice.isdecimal() else _PLAIN.get(choice, choice)


def _int(dice: Dice, argument: str, _: object) -> int:
    low, high = map(int, argument.split())
    return low + dice.below(high - low + 1)


def _decimal(dice: Dice, argument: str, _: object) -> float:
    low, high, places = map(int, argument.split())
    scale: int = 10**places
    return (low * scale + dice.below((high - low) * scale)) / scale


_KINDS: dict[str, Callable[[Dice, str, list[int]], Any]] = {
    "pick": _pick,
    "int": _int,
    "decimal": _decimal,
    "hex": lambda dice, argument, _: dice.digits(int(argument)),
    "digits": lambda dice, argument, _: dice.digits(int(argument), "123456789"),
    "letters": lambda dice, argument, _: dice.digits(int(argument), "ABCDEFGHKLMNPRSTUVWXYZ"),
    "person": lambda dice, *_: dice.name(),
    "word": lambda dice, *_: dice.word(),
    "title": lambda dice, argument, _: dice.words(int(argument)).capitalize(),
    "text": lambda dice, argument, _: dice.text(int(argument)),
    "time": lambda dice, *_: dice.time(),
    "day": lambda dice, *_: dice.time()[:10],
    "clock": lambda _, argument, counts: clock(int(argument) * counts[-1]),
}


def _spelled(value: Any, width: str | None) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{text:{width}}" if width else text


def _changed(value: Any, change: Any) -> Any:
    """Return a value with members of another, and those in place of its own."""
    if isinstance(value, dict) and isinstance(change, dict):
        return value | {name: _changed(value.get(name), each) for name, each in change.items()}
    if isinstance(value, list) and isinstance(change, list) and len(value) == len(change):
        return [_changed(*pair) for pair in zip(value, change, strict=True)]
    return value if change is None else change


def lines(value: Any) -> list[str]:
    """Return the lines of a text, which may lie in arrays."""
    return [line for each in value for line in lines(each)] if isinstance(value, list) else [value]


def at_path(value: Any, path: str) -> list[Any]:
    """Return the values at a path: `[]` elements, `[0]` one, `[k=a]` those with it, `*` members.

    >>> at_path({"a": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}, "a[k=y].v")
    [2]
    """
    values = [value]
    for step in _STEP.finditer(path):
        if step[0] == "[]":
            values = [each for array in values for each in array or ()]
        elif step[0] == "*":
            values = [each for members in values for each in members.values()]
        elif step[1]:
            same = (each for array in values for each in array)
            values = [each for each in same if str(each.get(step[1])) == step[2]]
        elif step[3]:
            values = [array[int(step[3])] for array in values]
        else:
            values = [each.get(step[0]) for each in values if isinstance(each, dict)]
    return values
