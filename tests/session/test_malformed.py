"""What goes on of lines that cannot be read."""

import json

import pytest

from tests.given import answer, call, line, texts
from tests.samples import DROP, HIDE, SECRET
from tests.talk import Talk

# Noise of the server


@pytest.mark.parametrize(
    "raw",
    [
        b"starting up",
        b"{level: info}",
        b"[INFO] ready",
        b"{}x",
        b"\xff",
        b"[]",
        b"{}",
        b"5",
        b'["a", {"b": 1}]',
        b'{"level":"info","id":1}',
    ],
)
def test_a_line_of_the_server_that_is_no_message_is_noise(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.server(raw)

    assert (talk.to_client, talk.noise) == ([], [raw])


@pytest.mark.parametrize("raw", [b"", b" ", b"\r", b"\t\r"])
def test_a_blank_line_of_the_server_is_dropped(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.server(raw)

    assert (talk.to_client, talk.noise) == ([], [])


@pytest.mark.parametrize(
    "noise",
    [
        b"ready ",
        b"[INFO] ",
        b"{a} {b} ",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b'{"level":"info"} ',
        b'[{"level":"info"}]',
        b'x {"jsonrpc":"2.0","id":1,',
    ],
)
def test_a_message_behind_noise_on_the_same_line_is_recovered(noise: bytes) -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert texts(talk.got(noise + answer(SECRET))) == ['{"a":1}']
    assert talk.noise == [noise]


# What two readers could read in two ways


def test_a_batch_that_cannot_be_read_does_not_carry_a_guarded_call_past_its_rule() -> None:
    talk = Talk(HIDE)
    ping = line(id=2, method="ping")
    strange = call("gone", id=1)[:-1] + b',"x":NaN}'
    talk.client(b"[" + b",".join((strange, ping, line(method="notifications/x"))) + b"]")
    assert talk.to_server == []
    assert sorted(json.loads(raw)["id"] for raw in talk.to_client) == [1, 2]
    assert len(talk.log) == 1


@pytest.mark.parametrize(
    "members",
    [
        b'"method":"tools/call","params":{"name":"gone"},"method":"ping"',
        b'"method":"tools/call","params":{"name":"gone"},"params":{"name":"get"}',
        b'"method":"tools/call","params":{"name":"gone","name":"get"}',
        b'"method":"tools/call","params":{"name":"gone"},"Method":"ping"',
        b'"method":"tools/call","params":{"name":"gone","Name":"get"}',
    ],
)
def test_what_cannot_be_read_and_may_be_read_in_two_ways_goes_nowhere(members: bytes) -> None:
    talk = Talk(HIDE)
    raw = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,%b}' % members
    assert json.loads(talk.replied(raw))["error"]["code"] == -32700
    plain = Talk()
    plain.client(raw)
    assert plain.to_server == [raw]


def test_a_batch_that_cannot_be_read_and_calls_nothing_guarded_passes() -> None:
    talk = Talk(HIDE)
    raw = b"[" + call("get")[:-1] + b',"x":NaN}]'
    talk.client(raw)
    assert talk.to_server == [raw]
