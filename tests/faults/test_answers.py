"""Messages that are odd in their bytes, their ids or their shape have the promised outcome."""

import json
from collections.abc import Iterator

import pytest

from tests.faults.processes import until
from tests.faults.puppets import Puppet, by_ways, puppet
from tests.faults.routes import failure
from tests.faults.sidecar import compact
from tests.faults.wrapper import Wrapped

Folders = pytest.TempPathFactory


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: Folders) -> Iterator[Puppet]:
    with puppet("stdio", tmp_path_factory.mktemp("rules")) as puppet_client:
        yield puppet_client


@pytest.fixture(scope="module")
def http(tmp_path_factory: Folders) -> Iterator[Puppet]:
    with puppet("http", tmp_path_factory.mktemp("rules")) as puppet_client:
        yield puppet_client


@pytest.fixture
def puppets(request: pytest.FixtureRequest) -> Iterator[Puppet]:
    """Return a server behind the proxy, which must be sound afterwards."""
    client: Puppet = request.getfixturevalue(request.param)
    with client.client.sound():
        yield client


START = b'{"jsonrpc":"2.0","id":ID,"result":'
NOISE = b"SECRET"
GOOD = START + b'{"content":[{"type":"text","text":"{\\"a\\":1.0,\\"noise\\":\\"SECRET\\"}"}]}}'
SHAPED = START + b'{"content":[{"type":"text","text":"{\\"a\\":1.0}"}]}}'
EXPECTED = {"plain": GOOD, "shaped": SHAPED, "withheld": SHAPED}


def quoted(raw: bytes) -> bytes:
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def answer(member: bytes, *, noise: bool, where: str) -> bytes:
    """Return an answer whose document has a member `kept`, and perhaps noise."""
    body = b'{"kept":%s%s,"z":1.50}' % (member, b',"noise":"%s"' % NOISE if noise else b"")
    text = b'"content":[{"type":"text","text":%s}]' % quoted(b"x" if where == "value" else body)
    value = b"" if where == "text" else b',"structuredContent":' + body
    return START + b"{" + text + value + b"}}"


def same(puppets: Puppet, tool: str, says: bytes) -> None:
    reply = puppets.ask(tool, says)
    assert reply.line == says.replace(b"ID", reply.id)


def still_shaped(puppets: Puppet, tool: str = "shaped") -> None:
    reply = puppets.ask(tool, GOOD)
    assert reply.line == SHAPED.replace(b"ID", reply.id)


NOISES = (
    b"Server listening",
    b"  ",
    b"\xff\xfe binary \x00",
    b"\xef\xbb\xbf",
    b"[1,2]",
    b"[" * 5000,
)
GLUED = (b"debug {1} [2] ", b"\xff\xfe", b"\xef\xbb\xbf", b'{"level":"info","message":"up"} ')


def put_aside(puppets: Puppet, before: int, noise: bytes) -> None:
    """Wait until a line of noise is there on stderr; blank ones are nothing."""
    until(lambda: not noise or noise + b"\n" in puppets.client.errors[before:])


@by_ways(4, "stdio", "http")
@pytest.mark.parametrize("end", [b"", b"\r"], ids=["LF", "CRLF"])
def test_noise_passes_to_stderr_and_messages_to_the_client(puppets: Puppet, end: bytes) -> None:
    for tool, good in EXPECTED.items():
        before = len(puppets.client.errors)
        reply = puppets.ask(tool, b"\n".join([*NOISES, GOOD]) + end)
        assert reply.line.rstrip(b"\r") == good.replace(b"ID", reply.id)
        for noise in NOISES:
            put_aside(puppets, before, noise.strip())
    warning = "warning: the server writes lines that are no messages to its stdout"
    assert puppets.client.log().count(warning) == 1


@by_ways(5, "stdio", "http")
@pytest.mark.parametrize("noise", GLUED)
def test_a_message_behind_noise_is_recovered(puppets: Puppet, noise: bytes) -> None:
    for tool, good in EXPECTED.items():
        before = len(puppets.client.errors)
        reply = puppets.ask(tool, noise + GOOD)
        assert reply.line == good.replace(b"ID", reply.id)
        put_aside(puppets, before, noise)


BEHIND = (GOOD, b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}', b"done")


@by_ways(5, "stdio", "http")
@pytest.mark.parametrize("behind", BEHIND)
def test_an_answer_with_something_glued_behind_it_is_the_answer(
    puppets: Puppet, behind: bytes
) -> None:
    # Of a long line only its ends are read, unless another message seems to be inside.
    long = GOOD.replace(b"1.0,", b"1.0,%s" % (b" " * 5000))
    for tool, good in EXPECTED.items():
        for first in (GOOD, long) if behind != b"done" else (GOOD,):
            reply = puppets.ask(tool, first + behind)
            line = next(each for each in reply.lines if b'"id":%b,' % reply.id in each)
            expected = first if tool == "plain" else good
            assert line == expected.replace(b"ID", reply.id)
            assert tool != "withheld" or NOISE not in b"".join(reply.lines)


TEXT = "é€😀 \u2028 \u2029 \u0085 \u001c".encode().replace(b"\x1c", b"\\u001c")


@by_ways(6, "stdio", "http")
def test_a_message_that_comes_byte_by_byte_is_one_message(puppets: Puppet) -> None:
    for tool in ("plain", "shaped"):
        for where in ("text", "value", "both"):
            says = answer(b'"%s"' % TEXT, noise=tool == "shaped", where=where)
            reply = puppets.ask(tool, says, 0)
            expected = answer(b'"%s"' % TEXT, noise=False, where=where)
            assert reply.line == expected.replace(b"ID", reply.id)


@by_ways(6, "stdio", "http")
def test_a_message_that_comes_in_two_pieces_is_one_message_wherever_it_is_cut(
    puppets: Puppet,
) -> None:
    says = answer(b'"%s"' % TEXT, noise=True, where="value")
    first = says.index(TEXT)
    for cut in range(first, first + len(TEXT)):
        reply = puppets.ask("shaped", says, cut)
        expected = answer(b'"%s"' % TEXT, noise=False, where="value")
        assert reply.line == expected.replace(b"ID", reply.id)


@by_ways(6, "stdio", "http")
def test_a_long_message_is_cut_inside_a_character_by_any_buffer(puppets: Puppet) -> None:
    for tool in ("plain", "shaped"):
        for start in range(3):
            long = b'"%s%s"' % (b"x" * start, "€".encode() * 100_000)
            reply = puppets.ask(tool, answer(long, noise=tool == "shaped", where="value"))
            expected = answer(long, noise=False, where="value")
            assert reply.line == expected.replace(b"ID", reply.id)


SPELLINGS = {
    "numbers": b"[1.10,1e400,-1e400,18446744073709551616,-0,-0.0,1.0,1E5,1e-400,0.10e1]",
    "a number of 5,000 digits": b"1" * 5000,
    "other escapes": rb'"\u00e9\/\u002f\u0000"',
    "600 arrays": b"[" * 600 + b"]" * 600,
    "a name twice": b'{"a":1,"a":2}',
}
UNREADABLE = {
    "NaN": b"[NaN,-Infinity]",
    "invalid UTF-8": b'"\xff\xfe"',
    # Python 3.11 reads 990 of them, 3.13 reads 9,998, and 3.14 as many as its stack holds.
    "400,000 arrays": b"[" * 400_000 + b"]" * 400_000,
    "a control character": b'"a\x01b"',
}
SURROGATE = b'"\xed\xa0\x80"'
PLACES = ("text", "value", "both")
LONE = rb'"\ud800 \uDFFF\ud800 \ud83d\ude00"'
ALL = {**SPELLINGS, **UNREADABLE, "lone surrogates": LONE, "a surrogate in UTF-8": SURROGATE}


@by_ways(7, "stdio", "http")
@pytest.mark.parametrize("member", ALL.values(), ids=ALL)
def test_an_answer_without_a_rule_passes_byte_for_byte(puppets: Puppet, member: bytes) -> None:
    for where in PLACES:
        same(puppets, "plain", answer(member, noise=True, where=where))


@by_ways(7, "stdio", "http")
@pytest.mark.parametrize("member", SPELLINGS.values(), ids=SPELLINGS)
def test_a_rule_keeps_the_spelling_of_the_server(puppets: Puppet, member: bytes) -> None:
    for tool in ("shaped", "withheld"):
        for where in PLACES:
            reply = puppets.ask(tool, answer(member, noise=True, where=where))
            expected = answer(member, noise=False, where=where)
            assert reply.line == expected.replace(b"ID", reply.id)


@by_ways(7, "stdio", "http")
def test_lone_surrogates_become_the_replacement_character(puppets: Puppet) -> None:
    replaced = '"\ufffd \ufffd\ufffd \\ud83d\\ude00"'.encode()
    for where in PLACES:
        reply = puppets.ask("shaped", answer(LONE, noise=True, where=where))
        assert reply.line == answer(replaced, noise=False, where=where).replace(b"ID", reply.id)


@by_ways(7, "stdio", "http")
@pytest.mark.parametrize("member", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_answer_passes_whole_or_is_withheld(puppets: Puppet, member: bytes) -> None:
    for where in PLACES:
        before = len(puppets.client.log())
        same(puppets, "shaped", answer(member, noise=True, where=where))
        if where != "text":  # else it may be prose, which a rule simply does not fit
            logged(puppets, before, "shaping")
        still_shaped(puppets)
        reply = puppets.ask("withheld", answer(member, noise=True, where=where))
        assert json.loads(reply.line)["result"]["isError"] is True
        assert b"the response was withheld: rule 'withholding' " in reply.line
        assert NOISE not in reply.line
        logged(puppets, before, "withholding")
        still_shaped(puppets, "withheld")


@by_ways(7, "stdio", "http")
def test_a_surrogate_in_utf_8_is_kept_as_it_came_or_all_is(puppets: Puppet) -> None:
    for where in PLACES:
        says = answer(SURROGATE, noise=True, where=where)
        reply = puppets.ask("shaped", says)
        either = (says, answer(SURROGATE, noise=False, where=where))
        assert reply.line in [each.replace(b"ID", reply.id) for each in either]
        still_shaped(puppets)


OTHERS = (b"987654", b'"ID"', b"ID.0", b"null", b"[ID]")


@by_ways(10, "stdio", "http")
@pytest.mark.parametrize("tool", ["plain", "shaped", "withheld"])
def test_answers_by_another_id_pass_as_they_are_and_the_right_one_counts(
    puppets: Puppet, tool: str
) -> None:
    good = SHAPED if tool != "plain" else GOOD
    for other in OTHERS:
        stray = GOOD.replace(b"ID", other)
        reply = puppets.ask(tool, stray + b"\n" + GOOD)
        expected = [each.replace(b"ID", reply.id) for each in (stray, good)]
        # Over HTTP there is no request that it could be the answer to.
        assert reply.lines == expected if isinstance(puppets.client, Wrapped) else expected[1:]


@by_ways(10, "stdio", "http")
def test_a_second_answer_passes_as_it_is(puppets: Puppet) -> None:
    for tool, good in (("plain", GOOD), ("shaped", SHAPED)):
        reply = puppets.ask(tool, GOOD + b"\n" + GOOD)
        expected = [each.replace(b"ID", reply.id) for each in (good, GOOD)]
        # Over HTTP the request is over, and there is no other that it could answer.
        assert reply.lines == expected[: None if isinstance(puppets.client, Wrapped) else 1]
        still_shaped(puppets)


@by_ways(10, "stdio", "http")
def test_a_request_of_the_server_by_the_id_of_a_call_is_not_its_answer(puppets: Puppet) -> None:
    asks = b'{"jsonrpc":"2.0","id":ID,"method":"roots/list"}'
    for tool, good in EXPECTED.items():
        reply = puppets.ask(tool, asks + b"\n" + GOOD)
        assert reply.lines == [each.replace(b"ID", reply.id) for each in (asks, good)]


DOCUMENT = b'{"content":[{"type":"text","text":"{\\"a\\":1.0,\\"noise\\":\\"SECRET\\"}"}]}'
SHAPES = {
    "a result and an error": b'"result":%s,"error":{"code":1,"message":"x"}' % DOCUMENT,
    "an error and a result": b'"error":{"code":1,"message":"x"},"result":%s' % DOCUMENT,
    "a result and no error": b'"result":%s,"error":null' % DOCUMENT,
    "an error that is a string": b'"error":"no"',
    "a result that is null": b'"result":null',
    "a result that is an array": b'"result":[1.10,{"noise":"x"}]',
    "content that is a string": b'"result":{"content":"{\\"noise\\":1}"}',
    "blocks that are none": b'"result":{"content":[1.0,null,"x",[]]}',
    "blocks without a type": b'"result":{"content":[{"text":"{\\"noise\\":1}"}]}',
}


@by_ways(11, "stdio", "http")
@pytest.mark.parametrize("tool", ["plain", "shaped"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_answer_of_a_wrong_shape_passes_as_it_is_and_its_call_is_over(
    puppets: Puppet, shape: bytes, tool: str
) -> None:
    # If the call was not over, it would be answered once more in the end.
    same(puppets, tool, b'{"jsonrpc":"2.0","id":ID,%s}' % shape)
    still_shaped(puppets)


@by_ways(11, "stdio", "http")
@pytest.mark.parametrize("size", [0, 10_000])
def test_a_rule_that_withholds_lets_no_result_pass_beside_an_error(
    puppets: Puppet, size: int
) -> None:
    long = b'"x":"%s",' % (b"x" * size)
    for shape in list(SHAPES.values())[:3]:
        reply = puppets.ask(
            "withheld", b'{"jsonrpc":"2.0","id":ID,%s%s}' % (long * bool(size), shape)
        )
        assert NOISE not in reply.line
        assert b"the response was withheld: rule 'withholding' " in reply.line


UNKNOWN = {
    "an error with data": b'"error":{"code":-32042,"message":"","data":{"noise":1.10,"x":[null]}}',
    "unknown content": b'"result":{"content":[{"type":"hologram","noise":1.10,"depth":[1e400]}]}',
    "unknown fields": b'"result":{"content":[{"type":"text","text":"{}","x":-0}],"y":{"z":1.0}}',
    "another kind of result": b'"result":{"resultType":"future","noise":1.0}',
    "unknown members beside it": b'"result":{"content":[]},"trace":{"noise":1.0},"x":[1.10]',
}


@by_ways(12, "stdio", "http")
@pytest.mark.parametrize("shape", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_results_and_members_pass_as_they_are(puppets: Puppet, shape: bytes) -> None:
    for tool in ("plain", "shaped"):
        same(puppets, tool, b'{"jsonrpc":"2.0","id":ID,%s}' % shape)


@by_ways(12, "stdio", "http")
def test_unknown_methods_pass_as_they_are(puppets: Puppet) -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/future","params":{"noise":1.10},"x":1.0}'
    asks = b'{"jsonrpc":"2.0","id":"s-1","method":"future/ask","params":[1.10],"x":-0}'
    reply = puppets.ask("shaped", note + b"\n" + asks + b"\n" + GOOD)
    assert reply.lines == [note, asks, SHAPED.replace(b"ID", reply.id)]


LEVEL = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":1.10}}'


@by_ways(13, "stdio")
def test_a_batch_of_the_server_that_no_rule_is_for_passes_as_it_is(puppets: Puppet) -> None:
    for batch in (b"[%s,%s]", b"[ %s , %s ]", b"[%s,%s,1.10,null,{},[]]"):
        same(puppets, "plain", batch % (GOOD, LEVEL))


@by_ways(13, "stdio", "http")
def test_a_rule_takes_the_answer_in_a_batch_of_the_server(puppets: Puppet) -> None:
    for tool in ("shaped", "withheld"):
        reply = puppets.ask(tool, b"[%s,%s]" % (LEVEL, GOOD))
        documents = [json.loads(line) for line in reply.lines]
        flat = [each for one in documents for each in (one if isinstance(one, list) else [one])]
        assert flat == [json.loads(LEVEL), json.loads(SHAPED.replace(b"ID", reply.id))]


def logged(puppets: Puppet, before: int, rule: str) -> None:
    """Wait until the log has said something of a rule."""
    until(lambda: any(rule in line for line in puppets.client.log()[before:]))


# Requests

GARBAGE = {
    "bytes": b"\xff\xfe\x00\x80",
    "blanks": b" \t ",
    "half a message": b'{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"a',
    "two messages": b'{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}',
    "null": b"null",
    "a batch of anything": b"[1, 1.10, null, {}]",
    "CRLF": b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1.10}}\r',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"notifications/x"}',
    "NaN and no UTF-8": b'{"jsonrpc":"2.0","method":"x","params":{"n":NaN,"m":"\xff"}}',
    "200,000 arrays": b"[" * 200_000,
    "an id that is null": b'{"jsonrpc":"2.0","id":null,"method":"x"}',
    "an answer to nobody": b'{"jsonrpc":"2.0","id":99,"result":{"x":1.10}}',
}
IDS = (b"5", b'"5"', b"5.0", b"5e0", b"-0", b"1e400", b'""', b"18446744073709551616")


@pytest.fixture
def wire(stdio: Puppet) -> Iterator[Wrapped]:
    assert isinstance(stdio.client, Wrapped)
    stdio.server_lines()
    with stdio.client.sound():
        yield stdio.client


def tool_call(id: bytes, **params: object) -> bytes:
    raw = compact(params)
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}' % (id, raw)


@pytest.mark.fault(21, "stdio")
@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_a_line_that_is_no_call_reaches_the_server_as_it_is(
    stdio: Puppet, wire: Wrapped, raw: bytes
) -> None:
    wire.write(raw + b"\n")
    assert stdio.server_lines() == raw + b"\n"


@pytest.mark.fault(21, "stdio")
def test_ids_differ_by_type_and_spelling(stdio: Puppet, wire: Wrapped) -> None:
    document = b'"result":{"content":[{"type":"text","text":"{\\"a\\":1.0,\\"noise\\":2}"}]}}'
    shaped = document.replace(b',\\"noise\\":2', b"")
    # The first ones are answered only with the last.
    for at, id in enumerate(IDS[:-1]):
        tool = "shaped" if at % 2 else "plain"
        wire.write(tool_call(id, name=tool, arguments={"says": ""}) + b"\n")
    says = b"\n".join(b'{"jsonrpc":"2.0","id":%s,%s' % (id, document) for id in IDS)
    last = tool_call(IDS[-1], name="shaped", arguments={"says": says.hex()})
    wire.write(last + b"\n")
    assert stdio.so_far() == [
        b'{"jsonrpc":"2.0","id":%s,%s' % (id, shaped if at % 2 else document)
        for at, id in enumerate(IDS)
    ]


AMBIGUOUS = "the call is ambiguous: its name or its arguments are given twice"
# Others stand in tests/session/test_ambiguity.py.
TWICE = {
    "a name twice": b'"name":"plain","name":"limited","arguments":{"limit":9}',
    "a name in capitals and escapes": rb'"name":"plain","N\u0041me":"hidden"',
    "arguments twice": b'"name":"limited","arguments":{"limit":1},"arguments":{"limit":9}',
    "an argument twice": b'"name":"limited","arguments":{"limit":9,"limit":1}',
}


@pytest.mark.fault(21, "stdio")
@pytest.mark.parametrize("params", TWICE.values(), ids=TWICE)
def test_a_call_with_two_readings_is_refused_and_never_arrives(
    stdio: Puppet, wire: Wrapped, params: bytes
) -> None:
    before = len(wire.log())
    wire.write(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{%s}}\n' % params)
    [error] = stdio.so_far()
    assert failure(error, 7) == AMBIGUOUS
    assert stdio.server_lines() == b""
    until(lambda: len(wire.log()) > before)
    [logged] = wire.log()[before:]
    assert logged.startswith("warning: ")
    assert logged.endswith(f": refused: {AMBIGUOUS}")
