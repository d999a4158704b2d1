"""Proof that a session still finds what it used: without it, nobody knows what a rule costs."""

from collections.abc import Iterator, Sequence
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
        after: list[str] | None = None
        for path, name, leaf in _leaves(_parts(answer)):
            for value, index, user in usage.uses(number, name, leaf):
                if value.isalpha() and value in definitions:
                    continue
                if after is None:
                    documents = map(answers.value, answer.texts[1])
                    after = [text for each in documents for _, _, text in _leaves(each)]
                each = used.setdefault((value, index), UsedValue(value, number, path, user))
                if any(has_word(value, text) for text in after):
                    each.place = "shown"
                elif each.place == "lost" and any(
                    has_word(value, text) for text in _stored(answer)
                ):
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
            yield from (leaf for _, _, leaf in _leaves(loads(result.snapshot.document)))


def _parts(answer: Replay) -> Any:
    """Return the document of the server's answer; with several copies or texts, all of them."""
    before = answer.before
    if before.structured is not None:
        return loads(bytes(before.structured))
    values = [answers.value(text) for text in before.texts or (before.text,)]
    return values[0] if len(values) == 1 else values


def _leaves(value: Any, path: str = "", name: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the path, the name and the text of each value, and of each name itself."""
    if isinstance(value, dict):
        for key, member in value.items():
            inner = f"{path}.{key}" if path else key
            yield inner, "", key
            yield from _leaves(member, inner, key)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from _leaves(element, f"{path}[{index}]", name)
    elif value is not None and not isinstance(value, bool):
        yield path, name, str(value)
