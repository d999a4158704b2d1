from typing import Any

from msgspec.structs import fields as own

from proxy.ruleset.loading.convert import fields
from proxy.ruleset.loading.rule_model import NO_DEFAULTS, CaseSpec, RuleFileSpec, RuleSpec
from proxy.ruleset.rule import Rule
from proxy.transforms import TRANSFORMS
from tests.rulecases import GOOD, PYTHON


def test_every_key_of_a_file_a_rule_and_a_test_is_in_a_good_file() -> None:
    texts = "\n".join(path.read_text() for path in (*GOOD, *PYTHON.glob("*.yaml")))
    known = [*fields(RuleFileSpec), *fields(RuleSpec), *fields(CaseSpec)]
    assert [word for word in known if f"{word}:" not in texts] == []


def test_what_a_rule_file_leaves_out_is_what_a_rule_starts_from() -> None:
    starts = {field.name: field.default for field in own(Rule)}
    same: dict[str, Any] = {
        word: field.default
        for word, field in fields(RuleSpec).items()
        if word in starts and word not in ("tools", "name", "hide", "arguments", "errors", "guard")
    }
    assert same == {word: starts[word] for word in same}
    assert len(same) > 8


def test_a_bound_of_a_rule_is_one_that_abridge_takes() -> None:
    abridge: Any = TRANSFORMS["abridge"]
    assert fields(RuleSpec)["max_bytes"].type == fields(abridge)["max_bytes"].type


def test_what_has_no_default_is_a_key_of_a_rule() -> None:
    assert set(fields(RuleSpec)) > NO_DEFAULTS
