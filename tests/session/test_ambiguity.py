"""What two readers may take for two different calls is told from what they cannot."""

import pytest
from msgspec import Raw

from proxy.session.ambiguity import (
    ambiguous,
    disguised,
    has_twin_members,
    repeats_a_name,
    tool_called,
)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (b'{"name":"a","arguments":{}}', False),
        (b'{"name":"a","name":"b"}', True),
        (b'{"name":"a","Name":"b"}', True),
        (rb'{"name":"a","n\u0061me":"b"}', True),
        (b'{"name":"a","arguments":{},"arguments":{}}', True),
        (b'{"name":"a","arguments":{"x":1,"x":2}}', False),
        (b'{"name":"a","_meta":{},"_meta":{}}', True),
        (b'{"name":"a"', True),
        (b'{"Name":"a"}', True),
        ('{"name":"a","argument\u017f":{}}'.encode(), True),
    ],
)
def test_a_call_is_ambiguous(params: bytes, said: bool) -> None:
    assert ambiguous(Raw(params)) is said


def test_a_name_is_the_same_however_it_is_spelled() -> None:
    assert has_twin_members(Raw(rb'{"a":1,"\u0061":2}'))
    assert not has_twin_members(Raw(b'{"a":1,"A":2}'))
    assert not has_twin_members(Raw(b"[1]"))
    assert has_twin_members(Raw(rb'{"a":1,"a":2,"b":"\ud800"}'))


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"method": "ping", "params": {"name": "a"}},
        {"method": "tools/call"},
        {"method": "tools/call", "params": ["a"]},
        {"method": "tools/call", "params": {"name": 5}},
    ],
)
def test_what_is_no_call_of_a_tool_calls_none(message: dict[str, object]) -> None:
    assert tool_called(message) is None


def test_some_readers_take_a_name_in_capitals_for_the_same() -> None:
    assert tool_called({"METHOD": "tools/call", "Params": {"Name": "a"}}) == "a"
    assert disguised(Raw(rb'{"Params":{},"b":"\ud800"}'), "params")
    assert not disguised(Raw(b'{"params":{"Params":1}}'), "params")
    assert not disguised(Raw(b"[]"), "params")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"a":[{"b":1},{"b":1}]}', False),
        (b'{"a":[{"b":1,"b":1}]}', True),
        (b"9" * 5000, False),
        (b'"a"', False),
        (b"[" * 100_000, True),
    ],
)
def test_members_of_one_name_are_found_at_any_depth(value: bytes, said: bool) -> None:
    assert repeats_a_name(Raw(value)) is said
