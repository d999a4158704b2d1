"""The envelope of a message: what is read of it, and what is written anew."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_abridge.document import message
from mcp_abridge.document.message import Message
from mcp_abridge.errors import DocumentError
from msgspec import Raw

from tests.faults.scale import scaled


def envelope(raw: bytes) -> Message:
    read = message.read(raw)
    assert isinstance(read, Message)
    return read


@pytest.mark.parametrize(
    ("raw", "key", "verb", "responds", "is_message"),
    [
        (b'{"id":7,"method":"tools/call","params":{"name":"t"}}', b"7", "tools/call", False, True),
        (b'{"method":"notifications/initialized"}', None, "notifications/initialized", False, True),
        (b'{"id":5,"result":{}}', b"5", "", True, True),
        (b'{"id":"5","error":{}}', b'"5"', "", True, True),
        (b'{"id":5.0,"method":"x","result":{}}', b"5.0", "x", False, True),
        (b'{"id":1}', b"1", "", False, False),
        *((b'{"id":1,"method":%b}' % each, b"1", "", False, True) for each in (b"5", b"[]")),
    ],
)
def test_a_message_is_a_request_a_notification_a_response_or_nothing(
    raw: bytes, key: bytes | None, verb: str, responds: bool, is_message: bool
) -> None:
    read = envelope(raw)
    assert (read.key, read.verb, read.responds, read.is_message) == (
        key,
        verb,
        responds,
        is_message,
    )


@pytest.mark.parametrize(
    ("id", "key"), [(rb'"\u0061\/b"', b'"a/b"'), (rb'"\ud800\u0061"', '"\ufffda"'.encode())]
)
def test_an_id_spelled_with_escapes_is_the_id_it_spells(id: bytes, key: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id
    assert envelope(raw).key == message.response_key(raw, b"") == key


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"5", "neither an object nor an array"),
        (b"{", "not JSON: Input data was truncated"),
        (b'{"a": NaN}', "not JSON: JSON is malformed: invalid character (byte 6)"),
        (b'{"a":' * 400_000, "nested too deeply"),
    ],
)
def test_an_invalid_message_is_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        message.read(raw)

    assert str(caught.value) == reason


def test_a_replaced_member_leaves_the_others_as_they_were_spelled() -> None:
    raw = rb'{ "jsonrpc": "2.0", "id": 1.0, "result": {}, "x": 1e400, "y": "\/ \ud800" }'

    changed = message.replaced(raw, result=Raw(b"[2.50]"))

    expected = (
        rb'{"jsonrpc":"2.0","id":1.0,"result":[2.50],"x":1e400,"y":"\/ %b"}' % "\ufffd".encode()
    )
    assert changed == expected


@pytest.mark.parametrize(
    ("start", "end", "key"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{', b"}}", b"7"),
        (b' { "jsonrpc" : "2.0" , "id" : "a\\"b" , "error" : {', b"}}", b'"a\\"b"'),
        (b'{"jsonrpc":"2.0","id":-1.5e3,"result":{', b"}}", b"-1.5e3"),
        (b'{"result":{"content":[', b']},"jsonrpc":"2.0","id":7}\r', b"7"),
        (b'{"id":7,"result":{', b'},"jsonrpc":"2.0"}', b"7"),
        (b'{"result":{"content":[', b']}, "id" : "a", "jsonrpc":"2.0" }', b'"a"'),
        # In doubt none is read.
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"', b"}", None),
        (b'{"jsonrpc":"2.0","id":null,"result":{', b"}}", None),
        (b'{"jsonrpc":"2.0","id":[7],"result":{', b"}}", None),
        (b'{"method":"x","params":{"a":[', b']},"jsonrpc":"2.0","id":7}', None),
        (b'[{"jsonrpc":"2.0","id":7,"result":{', b"}}]", None),
        (b'{"result":{"content":[', b']},"id":7}}', None),
        (b"", b"", None),
    ],
)
def test_the_id_of_a_response_is_read_off_its_ends(
    start: bytes, end: bytes, key: bytes | None
) -> None:
    assert message.response_key(start, end) == key


@pytest.mark.parametrize(
    ("start", "asks", "answers", "succeeds"),
    [
        (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{', True, False, False),
        (b'{"id":"a", "jsonrpc":"2.0", "method":"ping"', True, False, False),
        (b'{"jsonrpc":"2.0","id":1,"result":{"method":"x"', False, True, True),
        (b' {"error":{"code":', False, True, False),
        (b'{"jsonrpc":"2.0","id":[1],"result":{', False, False, False),
        (b'{"level":"info","result":1', False, False, False),
    ],
)
def test_the_kind_of_a_line_is_read_off_its_start(
    start: bytes, asks: bool, answers: bool, succeeds: bool
) -> None:
    assert message.asks(start) is asks
    assert message.answers(start) is answers
    assert message.succeeds(start) is succeeds


# Members that hold what may be taken for members of the message, some longer than its ends.
NESTED = (
    *(b'{"jsonrpc":"2.0","id":9}', b'{"id":9,"jsonrpc":"2.0"}', b'{"method":"x","id":9}', b"5"),
    *(b'{"a":[{"id":9}]}', rb'"\",\"jsonrpc\":\"2.0\",\"id\":9}"', b'"id"', b"{}", b'"a\\/b"'),
    *(b'[{"jsonrpc":"2.0","id":9,"result":{}}]', b'"' + b"x" * 700 + b'"', rb'"\ud800"'),
)
IDS = (b"1", b"5.0", b'"5"', rb'"a\"b"', rb'"\u0061"', b"null", b"[1]", b'{"id":1}', rb'"\ud800"')
OTHERS = ("result", "error", "method", "params", "x", "ID", "")
MEMBERS = st.fixed_dictionaries(
    {}, optional={"jsonrpc": st.just(b'"2.0"'), "id": st.sampled_from(IDS)}
).flatmap(
    lambda members: (
        st.dictionaries(st.sampled_from(OTHERS), st.sampled_from(NESTED), max_size=3)
        .map(lambda others: [*(members | others).items()])
        .flatmap(st.permutations)
    )
)


@settings(max_examples=scaled(100, 1000))
@given(MEMBERS, st.sampled_from([b",", b", ", b"\t,"]))
def test_what_is_read_off_the_ends_of_a_message_is_true_of_it(
    parts: list[tuple[str, bytes]], comma: bytes
) -> None:
    raw = b"{" + comma.join(b'"%b":%b' % (name.encode(), value) for name, value in parts) + b"}"
    start, end = raw[: message.ENDS], raw[-message.ENDS :]
    members = dict(parts)
    id, outcome = members.get("id", b""), {"result", "error"} & members.keys()

    key = message.response_key(start, end)
    assert key in (None, message.id_key(id))
    assert message.request_id(start, end) in (None, id)
    assert outcome or (key is None and not message.answers(start))
    assert "result" in members or not message.succeeds(start)
    assert "method" in members or not message.asks(start)
