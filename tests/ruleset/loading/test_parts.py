from typing import Any

import pytest

from proxy.document.paths import Path
from proxy.ruleset.loading.convert import INVALID, NodeConverter
from proxy.ruleset.loading.steps import read_part
from proxy.ruleset.loading.yaml_nodes import read
from proxy.transforms.project import FromPath
from proxy.transforms.shapes import FromArgument, Part


def convert(text: str) -> tuple[Any, list[str]]:
    root, _ = read("r.yaml", text.encode())
    assert root is not None
    converter = NodeConverter("r.yaml", {Part: read_part})
    value = converter.convert(root, Part, "it")
    return value, [str(problem) for problem in converter.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: [1, {b: null}], c: {}}", {"a": (1, {"b": None}), "c": {}}),
        (
            "[{argument: x}, {argument: x, default: {path: y}}]",
            (FromArgument("x"), FromArgument("x", {"path": "y"})),
        ),
        ("{path: a.b, default: 1}", FromPath(Path.parse("a.b"), 1)),
        ("{path: a.b, line: 1}", {"path": "a.b", "line": 1}),
        ("{path: [a]}", {"path": ("a",)}),
        ("{default: 1}", {"default": 1}),
    ],
)
def test_a_part_is_read_as_it_is_meant(text: str, value: Any) -> None:
    assert convert(text) == (value, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a: [{path: a..b}]}", "1:13: path: path 'a..b' has an empty name before '.b'"),
        (
            "{a: {path: b, defalt: 1}}",
            "1:15: unknown option 'defalt' of a; did you mean 'default'?",
        ),
        ("{argument: 5}", "1:12: argument: expected a text, found 5; quote it: '5'"),
    ],
)
def test_a_source_that_is_wrong_is_reported_at_its_place(text: str, message: str) -> None:
    assert convert(text) == (INVALID, [f"r.yaml:{message}"])
