import json
import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from proxy.transforms import TRANSFORMS
from tests.reference import examples
from tests.reference.reshaping import CANNOT_SAY, example, inferred, reshaping

SAYING = [name for name, kind in TRANSFORMS.items() if example(kind)[1] is not None]


def fits(schema: Any, value: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("name", SAYING)
def test_the_document_of_the_example_fits_before_and_after(name: str) -> None:
    before, after = example(TRANSFORMS[name])
    shown = examples.runs(TRANSFORMS[name])[0]
    assert fits(before, json.loads(shown.given))
    if shown.gives is not None:  # what was read from a text is one again in the end
        assert fits(after, json.loads(shown.gives))


@pytest.mark.parametrize("name", SAYING)
def test_what_is_shown_is_what_was_made(name: str) -> None:
    before, after = example(TRANSFORMS[name])
    said = "\n\n".join(reshaping(TRANSFORMS[name]))
    found = re.search(r"```yaml\n(.*)\n```", said, re.DOTALL)
    if before == after:
        assert found is None
        assert " ".join(said.split()).endswith("In the example, it stays.")
    else:
        assert found is not None
        assert yaml.safe_load(found[1]) == {"from": before, "to": after}


def test_a_step_that_cannot_say_says_that() -> None:
    unsaid = set(TRANSFORMS) - set(SAYING)
    assert unsaid == {"jmespath", "recast"}
    for name in unsaid:
        assert " ".join(next(reshaping(TRANSFORMS[name])).split()).endswith(CANNOT_SAY)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ({"a": 1}, {}),
        ({"a": [1, None]}, {"a": [1]}),
        ([{"a": 1}, {"b": "x"}], [{"a": "1"}, {"b": "x"}]),
        ("ab", "abc"),
        ([[], [1.5]], [[], [True]]),
    ],
)
def test_a_schema_is_of_one_document(value: Any, other: Any) -> None:
    assert fits(inferred(value), value)
    assert not fits(inferred(value), other)
