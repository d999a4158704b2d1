from typing import Any, get_args

from msgspec import Struct

from proxy.cli.descriptions import DESCRIPTIONS
from proxy.ruleset.loading import config_model as configkeys
from proxy.ruleset.loading.convert import TEXTS, fields
from proxy.ruleset.loading.rule_model import (
    Defaults,
    GuardSpec,
    PluginClasses,
    RuleFileSpec,
    RuleNodes,
    RuleSpec,
    Steps,
)
from proxy.transforms import TRANSFORMS

# Structs that are read from something else than a mapping of their fields.
NOTATIONS = (Steps, GuardSpec, PluginClasses, RuleNodes, Defaults)


def written() -> set[type[Struct]]:
    """Return every Struct that a rule file or a configuration is read as."""
    found: set[type[Struct]] = set()
    waiting: list[Any] = [
        RuleFileSpec,
        RuleSpec,
        *TRANSFORMS.values(),
        configkeys.ConfigSpec,
        configkeys.RouteSpec,
    ]
    while waiting:
        kind = waiting.pop()
        if kind in found or kind in TEXTS or kind in NOTATIONS:
            continue
        if isinstance(kind, type) and issubclass(kind, Struct):
            found.add(kind)
            waiting += [field.type for field in fields(kind).values()]
        waiting += get_args(kind)
    return found


def test_every_word_is_described_and_nothing_else() -> None:
    words = {(str(kind), word) for kind in written() for word in fields(kind)}
    said = {(str(kind), word) for kind, all in DESCRIPTIONS.items() for word in all}
    assert words - said == set()
    assert said - words == set()


def test_a_description_is_a_sentence() -> None:
    said = [text for described in DESCRIPTIONS.values() for text in described.values()]
    assert [text for text in said if not text.endswith(".") or text[0].islower()] == []
