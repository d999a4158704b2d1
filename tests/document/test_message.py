"""The envelope of a message: what is read of it, and what is written anew."""

import json

import pytest
from msgspec import Raw

from proxy.document import message
from proxy.document.message import Message
from proxy.document.surrogates import REPLACEMENT
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError


def envelope(raw: bytes) -> Message:
    read = message.read(raw)
    assert isinstance(read, Message)
    return read


def test_a_request_has_a_key_and_a_verb() -> None:
    read = envelope(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}')

    assert (read.key, read.verb, read.responds) == (b"7", "tools/call", False)
    assert bytes(read.params) == b'{"name":"t"}'


def test_a_notification_has_no_key() -> None:
    assert envelope(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').key is None


@pytest.mark.parametrize("member", ["result", "error"])
def test_a_message_with_a_result_or_an_error_and_no_method_responds(member: str) -> None:
    assert envelope(b'{"id":1,"%s":{}}' % member.encode()).responds
    assert not envelope(b'{"id":1,"method":"x","%s":{}}' % member.encode()).responds


def test_a_message_with_none_of_these_is_neither_request_nor_response() -> None:
    read = envelope(b'{"id":1}')

    assert (read.responds, read.method, read.verb) == (False, ABSENT, None)
    assert not read.speaks


@pytest.mark.parametrize("method", [b"5", b"null", b"[]"])
def test_a_method_that_is_no_string_is_no_verb(method: bytes) -> None:
    assert envelope(b'{"id":1,"method":%s}' % method).verb is None


def test_ids_of_another_type_or_spelling_are_other_ids() -> None:
    keys = [envelope(b'{"id":%s,"result":{}}' % id).key for id in (b"5", b'"5"', b"5.0", b"null")]

    assert keys == [b"5", b'"5"', b"5.0", b"null"]


def test_an_id_spelled_with_escapes_is_the_id_it_spells() -> None:
    assert message.id_key(rb'"\u0061\/b"') == message.id_key(b'"a/b"') == b'"a/b"'


@pytest.mark.parametrize("id", [rb'"\ud800a"', rb'"\uD800\u0061"'])
def test_an_id_keeps_its_lone_surrogates(id: bytes) -> None:
    raw = rb'{"jsonrpc":"2.0","id":%b,"result":{"x":"\udfff"}}' % id

    assert envelope(raw).key == message.response_key(raw, b"") == rb'"\ud800a"'
    assert json.loads(message.replaced(raw, result=1))["id"] == "\ud800a"


def test_a_name_that_is_no_utf_8_is_no_member() -> None:
    with pytest.raises(DocumentError):
        message.members(b'{"\x80": 1}')


def test_a_batch_is_a_list_of_raw_messages() -> None:
    assert message.read(b'[{"id":1}, {"id": 2}]') == [Raw(b'{"id":1}'), Raw(b'{"id": 2}')]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"5", "neither an object nor an array"),
        (b'"text"', "neither an object nor an array"),
        (b"null", "neither an object nor an array"),
        (b"{", "not JSON: Input data was truncated"),
        (b'{"a": NaN}', "not JSON: JSON is malformed: invalid character (byte 6)"),
        (b"", "not JSON: Input data was truncated"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason(raw: bytes, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        message.read(raw)

    assert str(caught.value) == said


@pytest.mark.parametrize("open", [b"[", b'{"a":'])
def test_what_is_nested_too_deeply_is_refused(open: bytes) -> None:
    with pytest.raises(DocumentError):
        message.read(open * 100_000)


def test_a_lone_surrogate_does_not_hide_the_envelope() -> None:
    read = envelope(rb'{"id":1,"method":"tools/call","params":{"name":"\ud800"}}')

    assert (read.key, read.verb) == (b"1", "tools/call")


def test_a_replaced_member_leaves_the_others_as_they_were_spelled() -> None:
    raw = rb'{ "jsonrpc": "2.0", "id": 1.0, "result": {}, "x": 1e400, "y": "\/ \ud800" }'

    changed = message.replaced(raw, result=Raw(b"[2.50]"))

    expected = rb'{"jsonrpc":"2.0","id":1.0,"result":[2.50],"x":1e400,"y":"\/ %b"}' % REPLACEMENT
    assert changed == expected


@pytest.mark.parametrize(
    ("start", "end", "key"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{', b"}}", b"7"),
        (b' { "jsonrpc" : "2.0" , "id" : "a\\"b" , "error" : {', b"}}", b'"a\\"b"'),
        (b'{"jsonrpc":"2.0","id":-1.5e3,"result":{', b"}}", b"-1.5e3"),
        (b'{"result":{"content":[', b']},"jsonrpc":"2.0","id":7}', b"7"),
        (b'{"result":{"content":[', b']},"jsonrpc":"2.0","id":7}\r', b"7"),
        (b'{"error":{"code":1}', b',"jsonrpc":"2.0","id":"x"}', b'"x"'),
        (b'{"id":7,"jsonrpc":"2.0","result":{', b"}}", b"7"),
        (b'{"result":{"content":[', b']}, "id" : "a", "jsonrpc":"2.0" }', b'"a"'),
        (b'{"jsonrpc":"2.0","result":{"content":[', b']},"id":7}', b"7"),
        (b'{ "jsonrpc" : "2.0", "error" : {"code":1}', b'}, "id" : "x" }\r', b'"x"'),
    ],
)
def test_the_id_of_a_response_is_read_off_its_ends(start: bytes, end: bytes, key: bytes) -> None:
    assert message.response_key(start, end) == key


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"', b"}"),
        (b'{"jsonrpc":"2.0","method":"x","id":7', b"}"),
        (b'{"id":7,"result":{', b"}}"),
        (b'{"jsonrpc":"2.0","id":null,"result":{', b"}}"),
        (b'{"jsonrpc":"2.0","id":[7],"result":{', b"}}"),
        (b'{"method":"x","params":{"a":[', b']},"jsonrpc":"2.0","id":7}'),
        (b'[{"jsonrpc":"2.0","id":7,"result":{', b"}}]"),
        (b'{"jsonrpc":"2.0","result":{"content":[', b'],"id":7}'),
        (b'{"jsonrpc":"2.0","method":"x","params":{', b'},"id":7}'),
        (b"", b""),
    ],
)
def test_where_the_ends_leave_doubt_no_id_is_read(start: bytes, end: bytes) -> None:
    assert message.response_key(start, end) is None


def test_a_line_that_begins_with_a_method_surely_asks() -> None:
    assert message.asks(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{')
    assert message.asks(b' {"method":"ping"')
    assert message.asks(b'{"jsonrpc":"2.0","id":1,"method":"ping"')
    assert message.asks(b'{"id":"a", "jsonrpc":"2.0", "method":"ping"')
    assert not message.asks(b'{"jsonrpc":"2.0","id":1,"result":{"method":"x"')


def test_a_line_that_begins_with_an_id_or_a_result_surely_answers() -> None:
    assert message.answers(b'{"jsonrpc":"2.0","id":1,"result":{"method":"x"')
    assert message.answers(b' {"error":{"code":')
    assert message.answers(b'{"jsonrpc":"2.0","result":{')
    assert not message.answers(b'{"jsonrpc":"2.0","id":1,"method":"ping"')
    assert not message.answers(b'{"jsonrpc":"2.0","id":[1],"result":{')
    assert not message.answers(b'{"level":"info","result":1')


def test_a_result_carries_the_id_as_it_was_spelled() -> None:
    assert message.result(b"5.0", {"a": 1}) == b'{"jsonrpc":"2.0","id":5.0,"result":{"a":1}}'


def test_what_was_thrown_away_was_too_long_or_too_much_to_hold() -> None:
    assert message.thrown_away(501, 500) == "a message of 501 bytes is over the limit of 500 bytes"
    said = "there is no memory for a message of 500 bytes from the server"
    assert message.thrown_away(500, 500, " from the server") == said


def test_an_error_has_a_code_and_a_message() -> None:
    assert json.loads(message.error(b'"x"', -32602, "Unknown tool: t")) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32602, "message": "Unknown tool: t"},
    }


@pytest.mark.parametrize(("modern", "more"), [(False, {}), (True, {"resultType": "complete"})])
def test_a_refusal_is_an_error_result_and_names_its_type_where_the_revision_asks_for_it(
    modern: bool, more: dict[str, str]
) -> None:
    assert json.loads(message.refusal(b"1", "no", modern))["result"] == {
        **more,
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }


def test_a_message_over_several_lines_becomes_one_with_the_same_meaning() -> None:
    raw = b'\n{\r\n  "a": "x\\ny",\n  "b": [1,\r2]\n}\n'
    line = message.one_line(raw)
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line) == json.loads(raw)
    assert message.one_line(b'{"a":1}') == b'{"a":1}'


def test_a_message_on_one_line_stays_the_same_object() -> None:
    raw = b'{"a": "x\\ny"}'
    assert message.one_line(raw) is raw
