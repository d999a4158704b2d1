"""Calls that two readers may take for two different ones are recognised."""

import pytest
from mcp_abridge.session.ambiguity import ambiguous


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ('{"name":"a","arguments":{}}', False),
        ('{"name":"a","arguments":{"x":1,"X":1}}', False),
        ('{"name":"a","arguments":[{"b":1},{"b":1}]}', False),
        ('{"name":"a","arguments":%s}' % ("9" * 5000), False),
        ('{"name":"a","name":"b"}', True),
        ('{"name":"a","Name":"b"}', True),
        (r'{"name":"a","n\u0061me":"b"}', True),
        ('{"name":"a","arguments":{},"arguments":{}}', True),
        ('{"name":"a","arguments":[{"x":1,"x":1}]}', True),
        ('{"Name":"a"}', True),
        ('{"name":"a","argument\u017f":{}}', True),
        ('{"name":"a"', True),
        ("[" * 100_000, True),
    ],
)
def test_a_call_is_ambiguous(params: str, expected: bool) -> None:
    assert ambiguous(b'{"method":"tools/call","params":%b}' % params.encode()) is expected
