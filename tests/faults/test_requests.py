"""What must be seen of requests that are odd in their bytes, their ids or their shape."""

import json
from collections.abc import Iterator

import pytest

from tests.faults.processes import until
from tests.faults.puppets import Puppet, puppet
from tests.faults.sidecar import compact
from tests.faults.wrapper import Wrapped

GARBAGE = {
    "no JSON": b"garbage",
    "bytes": b"\xff\xfe\x00\x80",
    "nothing": b"",
    "blanks": b" \t ",
    "half a message": b'{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"a',
    "two messages": b'{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}',
    "a number": b"5",
    "a string": b'"text"',
    "null": b"null",
    "an empty batch": b"[]",
    "a batch of anything": b"[1, 1.10, null, {}]",
    "CRLF": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1.10}}\r',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/x"}',
    "NaN": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":NaN}}',
    "invalid UTF-8": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":"\xff"}}',
    "600 arrays": b'{"jsonrpc":"2.0","method":"x","params":{"n":' + b"[" * 600 + b"]" * 600 + b"}}",
    "200,000 arrays": b"[" * 200_000,
    "an id that is null": b'{"jsonrpc":"2.0","id":null,"method":"x"}',
    "a method that is none": b'{"jsonrpc":"2.0","method":5}',
    "an answer to nobody": b'{"jsonrpc":"2.0","id":99,"result":{"x":1.10}}',
    "no version": b'{"id":98,"result":{"x":1.10}}',
}
IDS = (b"5", b'"5"', b"5.0", b"5e0", b"-0", b"1e400", b'""', b"18446744073709551616")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Puppet]:
    with puppet("stdio", tmp_path_factory.mktemp("rules")) as found:
        yield found


@pytest.fixture
def written(running: Puppet) -> Iterator[Puppet]:
    """Return a server behind the wrapper, which must be sound afterwards."""
    running.heard()
    with running.client.sound():
        yield running


@pytest.fixture
def wire(written: Puppet) -> Wrapped:
    assert isinstance(written.client, Wrapped)
    return written.client


def called(id: bytes, **params: object) -> bytes:
    held = compact(params)
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}' % (id, held)


def failures(lines: list[bytes]) -> list[tuple[str, str]]:
    found = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    assert all(each["result"]["isError"] for each in found)
    return [(each["id"], each["result"]["content"][0]["text"]) for each in found]


@pytest.mark.fault(21, "stdio")
@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_call_reaches_the_server_as_it_is(
    written: Puppet, wire: Wrapped, raw: bytes
) -> None:
    wire.write(raw + b"\n")
    assert written.heard() == raw + b"\n"


@pytest.mark.fault(21, "stdio")
def test_ids_are_told_apart_by_type_and_spelling(written: Puppet, wire: Wrapped) -> None:
    document = b'"result":{"content":[{"type":"text","text":"{\\"a\\":1.0,\\"noise\\":2}"}]}}'
    shaped = document.replace(b',\\"noise\\":2', b"")
    # The first ones are answered only with the last.
    for at, id in enumerate(IDS[:-1]):
        tool = "shaped" if at % 2 else "plain"
        wire.write(called(id, name=tool, arguments={"says": ""}) + b"\n")
    says = b"\n".join(b'{"jsonrpc":"2.0","id":%s,%s' % (id, document) for id in IDS)
    last = called(IDS[-1], name="shaped", arguments={"says": says.hex()})
    wire.write(last + b"\n")
    assert written.so_far() == [
        b'{"jsonrpc":"2.0","id":%s,%s' % (id, shaped if at % 2 else document)
        for at, id in enumerate(IDS)
    ]


AMBIGUOUS = "the call is ambiguous: its name or its arguments are given twice"
TWICE = {
    "a name twice": b'"name":"plain","name":"limited","arguments":{"limit":9}',
    "the other one last": b'"name":"limited","name":"plain","arguments":{"limit":9}',
    "a name in capitals": b'"name":"plain","Name":"limited","arguments":{"limit":9}',
    "a hidden tool": b'"name":"plain","NAME":"hidden"',
    "a name in escapes": rb'"name":"plain","n\u0061me":"hidden"',
    "arguments twice": b'"name":"limited","arguments":{"limit":1},"arguments":{"limit":9}',
    "an argument twice": b'"name":"limited","arguments":{"limit":9,"limit":1}',
    "arguments in capitals": b'"name":"limited","arguments":{"limit":1},"Arguments":{"limit":9}',
}


@pytest.mark.fault(21, "stdio")
@pytest.mark.parametrize("params", TWICE.values(), ids=TWICE)
def test_a_call_with_two_readings_is_refused_and_never_arrives(
    written: Puppet, wire: Wrapped, params: bytes
) -> None:
    before = len(wire.log())
    wire.write(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{%s}}\n' % params)
    assert failures(written.so_far()) == [("7", AMBIGUOUS)]
    assert written.heard() == b""
    until(lambda: len(wire.log()) > before)
    [logged] = wire.log()[before:]
    assert logged.startswith("warning: ")
    assert logged.endswith(f": refused: {AMBIGUOUS}")
