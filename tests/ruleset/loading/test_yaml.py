from typing import Any

import pytest
from mcp_abridge.ruleset.loading.yaml_errors import MAX_PROBLEMS
from mcp_abridge.ruleset.loading.yaml_nodes import MAX_BYTES, plain_value, read

from tests.faults.scale import scaled


def load(text: str) -> Any:
    root, problems = read("r.yaml", text.encode())
    assert (root is not None, problems) == (True, [])
    assert root is not None
    return plain_value(root)


def messages(raw: bytes) -> list[str]:
    return [str(problem) for problem in read("r.yaml", raw)[1]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("12:30", "12:30"),
        ("2001-12-14", "2001-12-14"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.10", 1.1),
        (".inf", ".inf"),
        ("=", "="),
        ("True", True),
        ("~", None),
        ("", None),
        ('"null"', "null"),
        (r'"\ud83d\ude00"', "😀"),
    ],
)
def test_a_scalar_is_read_as_the_author_plainly_meant_it(text: str, value: object) -> None:
    actual = load(f"a: {text}")
    assert actual == {"a": value}
    assert type(actual["a"]) is type(value)


def test_keys_are_always_texts() -> None:
    assert load("on: 1\n12: 2\ntrue: 3\n~: 4") == {"on": 1, "12": 2, "true": 3, "~": 4}


def test_every_node_knows_its_line_and_column() -> None:
    root, _ = read("r.yaml", b"a:\n  - b: [1, 22]\n")
    assert root is not None
    inner = root.value["a"].value[0]
    assert (inner.keys["b"].line, inner.keys["b"].column) == (2, 5)
    assert [(each.line, each.column) for each in inner.value["b"].value] == [(2, 9), (2, 12)]


def test_a_merge_key_adds_only_keys_that_the_mapping_lacks() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], a: 0}"
    # In the order of the text: the order of the keys of a step is that of its work.
    assert list(load(text)["z"].items()) == [("a", 0), ("b", 1), ("c", 2)]
    names = [f"key{number}" for number in range(9, 0, -1)]
    assert list(load(f"x: &x {{{': 1, '.join(names)}: 1}}\ny: {{<<: *x}}")["y"]) == names


def test_a_byte_order_mark_windows_line_ends_and_question_marks_in_texts_are_accepted() -> None:
    assert load("\ufeffa: 1\r\nb: 2\r\n") == {"a": 1, "b": 2}
    assert load("{a: why?, b: http://x?y=1&z=2}") == {"a": "why?", "b": "http://x?y=1&z=2"}


ALIASES = "\n".join(
    ["a0: &a0 [1, 2]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
).encode()
MERGES = f"a: &a {{{', '.join(f'k{n}: 1' for n in range(2_000))}}}\nb:\n".encode()
MERGES += b"- {<<: *a}\n" * 100
NESTED = b"- &a0 []\n" + b"".join(b"- &a%d [*a%d]\n" % (n, n - 1) for n in range(1, 5_000))


INVALID = [
    (b"- " * 30_000, "1:121: nested more than 60 levels deep"),
    (b"[" * 100_000, "1:61: nested more than 60 levels deep"),
    (b"? " * 60_000, "1:121: nested more than 60 levels deep"),
    (b"a: " + b"9" * 5_000, "1:4: a number of 5000 digits; quote it"),
    (b"a" * (MAX_BYTES + 1), "1:1: more than 262144 bytes, the most a rule file may have"),
    (ALIASES, "6:5: over 100000 values, every alias counted"),
    (MERGES, "1:4: over 100000 values merged by '<<'"),
    (NESTED, "61:3: nested more than 60 levels deep"),
    (b"a: \xff", "1:4: byte 0xff is not UTF-8; save the file in that encoding"),
    (b"a: 1\nb: \x01", "2:4: '\\x01' cannot stand in YAML"),
    (b"", "1:1: the file is empty; its first line is 'version: 1'"),
    # Aliases show the bound in a hundredth of the time.
    (b"a: [" + b"1," * 99_999 + b"1]", "1:4: over 100000 values, every alias counted"),
]


@pytest.mark.slow
@pytest.mark.fault(42, "inside")
@pytest.mark.parametrize(("raw", "message"), INVALID[: scaled(-1, len(INVALID))])
def test_invalid_yaml_is_one_problem(raw: bytes, message: str) -> None:
    assert messages(raw) == [f"r.yaml:{message}"]


@pytest.mark.fault(42, "inside")
def test_no_more_than_200_problems_are_looked_for() -> None:
    root, problems = read("r.yaml", b"a: 1\n" * 1000)
    assert root is None
    assert len(problems) == MAX_PROBLEMS + 1
    assert str(problems[0]) == "r.yaml:2:1: duplicate key 'a'; the first stands in line 1"
    assert str(problems[-1]) == "r.yaml: more than 200 problems; mend these first"
