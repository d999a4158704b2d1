from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct, field

from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.ruleset.loading.convert import INVALID, NodeConverter
from proxy.ruleset.loading.yaml_nodes import read

Count = Annotated[int, Meta(ge=1, le=9)]


class Inner(Struct, frozen=True):
    argument: str


class Options(Struct, frozen=True, kw_only=True):
    at: Path = Path()
    names: tuple[str, ...] = ()
    count: Count | None = None
    share: float = 0.5
    deep: bool = False
    side: Literal["start", "end"] = "start"
    constant: str | Inner = ""
    pattern: Pattern | None = None
    where: Expression | None = None
    words: Mapping[str, Count] = {}
    as_: str = field(default="items", name="as")
    free: Any = None
    many: tuple[str | Inner, ...] = ()

    def __post_init__(self) -> None:
        if self.deep and self.side == "end":
            raise ValueError("'deep' begins at the start")


def convert(text: str, kind: Any = Options) -> tuple[Any, list[str]]:
    root, problems = read("r.yaml", text.encode())
    assert root is not None
    converter = NodeConverter("r.yaml", {})
    value = converter.convert(root, kind, "it")
    return value, [str(problem) for problem in [*problems, *converter.problems]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{count: 10}", "1:9: count: 10 is greater than the maximum of 9"),
        ("{count: '5'}", "1:9: count: expected a whole number, found '5'"),
        ("{share: null}", "1:9: share: expected a number, found nothing"),
        ("{deep: 'false'}", "1:8: deep: expected true or false, found 'false'"),
        ("{as: 12}", "1:6: as: expected a text, found 12; quote it: '12'"),
        ("{words: [a]}", "1:9: words: expected a mapping, found a list"),
        ("{words: {a: 0}}", "1:13: a: 0 is less than the minimum of 1"),
        (
            "{side: ends}",
            "1:8: side: expected one of 'start', 'end', found 'ends'; did you mean 'end'?",
        ),
        ("{constant: 5}", "1:12: constant: expected a text or {argument}, found 5; quote it: '5'"),
        ("{constant: {arg: x}}", "1:12: constant: 'argument' is missing"),
        ("{deep: true, side: end}", "1:8: it: 'deep' begins at the start"),
        ("[]", "1:1: it: expected a mapping of options, found an empty list"),
    ],
)
def test_a_value_that_does_not_fit_is_reported_at_its_place(text: str, message: str) -> None:
    value, problems = convert(text)
    assert value is INVALID
    assert f"r.yaml:{message}" in problems


def test_what_was_reported_once_is_not_reported_again() -> None:
    root, _ = read("r.yaml", b"[&a {count: 0}, *a]")
    assert root is not None
    converter = NodeConverter("r.yaml", {})
    assert converter.convert(root, tuple[Options, ...], "it") is INVALID
    assert len(converter.problems) == 1


def test_an_expression_nested_beyond_reason_is_a_problem_like_any_other() -> None:
    value, problems = convert("where: " + "(" * 5_000 + "a" + ")" * 5_000)
    assert value is INVALID
    assert len(problems) == 1
    assert "where: " in problems[0]
