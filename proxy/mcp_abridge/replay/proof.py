"""Proof that a session still finds what it used: without it, nobody knows what a rule costs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mcp_abridge.document.tree import loads
from mcp_abridge.replay import answers
from mcp_abridge.replay.play import Replay
from mcp_abridge.replay.usage import Usage, has_word


class UsedValue(Struct):
    """A value that a call took from an earlier answer, and its place in the shaped one.

    `call` is the number of the call of that answer in its session.
    """

    value: str
    call: int
    path: str
    user: str
    place: str = "lost"


def used_values(session: Sequence[Replay], definitions: str = "") -> list[UsedValue]:
    """Return the values of the answers of a session that its later calls used.

    A value that the model had before, or a word of the tools' `definitions`, is none.
    """
    usage = Usage([(each.exchange.tool, each.exchange.arguments) for each in session])
    used: dict[tuple[str, int], UsedValue] = {}
    for number, answer in enumerate(session):
        leaves = list(_leaves(_parts(answer)))
        text = _lines(leaf for _, leaf in leaves)
        after: str | None = None
        for value, index, user in usage.within(number, text):
            if value.isalpha() and value in definitions:
                continue
            if after is None:
                texts = answer.texts[1]
                after = _lines(leaf for each in texts for _, leaf in _leaves(answers.value(each)))
            path = next((path for path, leaf in leaves if has_word(value, leaf)), "")
            each = used.setdefault((value, index), UsedValue(value, number, path, user))
            if has_word(value, after):
                each.place = "shown"
            elif each.place == "lost" and any(has_word(value, leaf) for leaf in _stored(answer)):
                each.place = "view"
    # Of an argument that is a path, the path counts, not each of its folders too.
    return [
        each
        for (value, call), each in used.items()
        if not any(call == of and value != whole and value in whole for whole, of in used)
    ]


def _stored(answer: Replay) -> Iterator[str]:
    for _, result in answer.shaped:
        if result.snapshot is not None:
            yield from (leaf for _, leaf in _leaves(loads(result.snapshot.raw)))


def _parts(answer: Replay) -> Any:
    """Return the document of the server's answer; with several copies or texts, all of them."""
    before = answer.before
    if before.structured is not None:
        return loads(bytes(before.structured))
    values = [answers.value(text) for text in before.texts or (before.text,)]
    return values[0] if len(values) == 1 else values


def _lines(texts: Iterable[str]) -> str:
    return "\n{}\n".format("\n".join(texts))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            inner = f"{path}.{name}" if path else name
            yield inner, name
            yield from _leaves(member, inner)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _leaves(element, f"{path}[{index}]")
    elif value is not None and not isinstance(value, bool):
        yield path, str(value)
