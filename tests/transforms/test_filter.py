import json
from random import Random

import pytest
from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import Refusal, TransformError
from mcp_abridge.transforms.base import Argument
from mcp_abridge.transforms.filter import Filter

from tests.builders import rule
from tests.documents import call, shaped

# A glob, and the paths among PATHS that it fits.
PATHS = ["a.md", "b.png", "n/a.md", "n/s/a.md", "n/", "n", "[a].md", "é.md", "a\nb.md", "+.md"]
GLOBS: list[tuple[str, list[str]]] = [
    ("*.md", ["a.md", "[a].md", "é.md", "a\nb.md", "+.md"]),
    ("**.md", ["a.md", "n/a.md", "n/s/a.md", "[a].md", "é.md", "a\nb.md", "+.md"]),
    ("**/a.md", ["a.md", "n/a.md", "n/s/a.md"]),
    ("n/*", ["n/a.md", "n/"]),
    ("n/**", ["n/a.md", "n/s/a.md", "n/"]),
    ("n/**/*.md", ["n/a.md", "n/s/a.md"]),
    ("?.md", ["a.md", "é.md", "+.md"]),
    ("[a].md", ["[a].md"]),
    ("+.md", ["+.md"]),
    ("", []),
    ("**", PATHS),
]


@pytest.mark.parametrize(("glob", "fitting"), GLOBS)
def test_a_glob_fits_these_paths(glob: str, fitting: list[str]) -> None:
    document = Document(list(PATHS))
    Filter(glob=glob)(document.root, call())
    assert document.cell[0] == fitting


def test_a_wrong_expression_of_the_model_is_refused_and_named() -> None:
    with pytest.raises(Refusal) as caught:
        shaped(b'["a"]', Filter(match=Argument("pattern")), at=call(pattern="(a"))
    assert str(caught.value) == (
        "pattern: '(a' is not a regular expression RE2 takes: missing ): (a"
    )


@pytest.mark.fault(37, "inside")
@pytest.mark.parametrize(
    ("step", "pattern", "signs"),
    [
        (Filter(match=Argument("pattern")), "(?:a|b)*a(?:a|b){1000}c", "ab"),
        (Filter(glob=Argument("pattern")), "**/" * 300 + "c", "a/"),
    ],
)
def test_a_pattern_of_the_model_that_takes_too_much_work_is_refused(
    step: Filter, pattern: str, signs: str
) -> None:
    step_call = call(pattern=pattern)
    step_call.fuel = Fuel(LITTLE)
    rows = json.dumps(["".join(Random(n).choices(signs, k=10_000)) for n in range(20)])
    with pytest.raises(Refusal) as caught:
        shaped(rows.encode(), step, at=step_call)
    reason = "pattern: it takes more than 20000 units of work; ask for something simpler"
    assert str(caught.value) == reason


def test_a_pattern_of_the_model_has_at_most_1000_characters() -> None:
    step = Filter(glob=Argument("glob"))
    assert shaped(b'["a"]', step, at=call(glob="a" * 1000)) == b"[]"
    with pytest.raises(Refusal) as caught:
        shaped(b'["a"]', step, at=call(glob="a" * 1001))
    assert str(caught.value) == "glob: more than 1000 characters"


TIMES = b'[{"id":1,"made":"a","seen":"a"},{"id":2,"made":"b","seen":"c"},{"id":3,"made":"d"}]'


@pytest.mark.parametrize(
    ("where", "ids"),
    [("made == seen", [1]), ("made != seen", [2, 3]), ("made < seen", [2]), ("made == @.gone", [])],
)
def test_two_members_of_an_element_are_compared(where: str, ids: list[int]) -> None:
    step = rule(f"response: [{{filter: {where}}}]").pipeline[0]
    assert [each["id"] for each in json.loads(shaped(TIMES, step))] == ids


def test_a_bare_word_that_is_compared_and_is_no_member_fails_with_the_right_quotes() -> None:
    step = rule("response: [{filter: made == open}]").pipeline[0]
    with pytest.raises(TransformError) as caught:
        shaped(TIMES, step)
    assert str(caught.value) == (
        "filter: open is a name, and no member there; did you mean 'open' in single quotes? "
        "As a name that may be missing, write @.open"
    )
