"""A list of tools as a client gets it by some rules.

Made without the session, which others may enter meanwhile: a long list takes some time.
"""

from msgspec import Raw, Struct

from proxy import definitions
from proxy.definitions import Seen
from proxy.rule import RuleSet
from proxy.standing import planned


class Edited(Struct, frozen=True):
    """What came of a result of tools/list that was `given`.

    `result` is None where nothing changes, `seen` what it said of its tools, `said` are lines for
    the log, and `error` is what went wrong.
    """

    given: Raw
    result: Raw | None = None
    seen: dict[str, Seen] = {}
    said: tuple[str, ...] = ()
    error: Exception | None = None


def edit(given: Raw, rules: RuleSet) -> Edited:
    """Return what becomes of a result of tools/list; never raises."""
    said: list[str] = []
    try:
        result, seen = definitions.rewrite(
            given, rules, lambda tool, fact: planned(rules, tool, fact), said.append
        )
    except Exception as error:  # a transform's own `reshape` may raise anything
        return Edited(given, said=tuple(said), error=error)
    return Edited(given, result, seen, tuple(said))
