import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.paths import Path
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.truncate import Truncate

from tests.documents import TEXTS, call, shaped, shaped_text

CONTENT = Path.parse("content")


def window(text: str, step: Truncate, **arguments: Any) -> tuple[str, dict[str, Any] | None]:
    step_call = call(**arguments)
    part = shaped_text(text, step, at=step_call)
    return part, step_call.notices[0].value if step_call.notices else None


def test_a_text_no_longer_than_the_window_is_left_alone() -> None:
    assert window("x" * 10, Truncate(max_length=10)) == ("x" * 10, None)
    raw = b'{"content": "caf\\u00e9"}'
    assert shaped(raw, Truncate(at=CONTENT)) == b'{"content":"caf\\u00e9"}'


@pytest.mark.fault(39, "inside")
@pytest.mark.parametrize("start", [3, 99, 10**30])
def test_a_window_past_the_end_is_empty(start: int) -> None:
    part, notice = window("abc", Truncate(), startIndex=start)
    assert part == ""
    assert notice == {
        "truncated": True,
        "totalLength": 3,
        "startIndex": 3,
        "endIndex": 3,
        "hasMore": False,
    }


def test_the_field_of_an_object_is_cut_and_the_notice_stands_beside_it() -> None:
    raw = b'{"path": "\\/a", "content": "abcdef", "truncation": "theirs"}'
    output = shaped(raw, Truncate(at=CONTENT, max_length=2))
    assert output.startswith(
        b'{"path":"\\/a","content":"ab","truncation_of_server":"theirs","truncation":{'
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x" * 16 + "\n" + "yy zz and more", "x" * 16 + "\nyy "),
        ("x" * 17 + "\n" + "y z and more", "x" * 17 + "\ny "),
        ("x" * 18 + "\n" + "yyyyyy", "x" * 18 + "\n"),
        ("x" * 30, "x" * 20),
    ],
)
def test_a_window_may_end_at_a_line_or_else_a_word_in_its_last_tenth(text: str, part: str) -> None:
    assert window(text, Truncate(max_length=20, boundary="word"))[0] == part


def test_a_window_from_the_end_may_begin_with_a_line() -> None:
    text = "first\n" + "x" * 8 + "\n" + "y" * 18
    step = Truncate(max_length=20, from_="end", boundary="word")
    assert window(text, step)[0] == "y" * 18


def test_an_inline_hint_names_the_argument_as_the_client_knows_it() -> None:
    step_call = Call("read", {}, names={"startIndex": "page_startIndex"}, notices=[])
    step = Truncate(max_length=3, hint="inline")
    assert shaped_text("abcdef", step, at=step_call) == (
        "abc\n\n<error>Content truncated. Call with page_startIndex of 3 to get more.</error>"
    )
    assert window("abcdef", step, startIndex=3)[0] == "def"
    # It stands at the side that is missing.
    step = Truncate(max_length=3, hint="inline", from_="end")
    assert window("abcdef", step)[0].endswith(
        " Call with startIndex of 3 to get more.</error>\n\ndef"
    )


def test_arguments_may_be_renamed_and_are_advertised() -> None:
    step = Truncate(at=CONTENT, max_length=5, arguments={"startIndex": "params.from"})
    assert {name: [*each.schema.values()] for name, each in step.parameters.items()} == {
        "maxLength": ["integer", 1, 5, "How many characters of `content` to return"],
        "params.from": [
            *("integer", 0, 0, "At which character of `content` to start, counted from 0"),
        ],
    }
    step_call = Call("read", {"params": {"from": 2}, "maxLength": 3})
    assert json.loads(shaped(b'{"content": "abcdef"}', step, at=step_call))["content"] == "cde"


def test_the_description_gains_a_sentence_on_how_to_go_on() -> None:
    assert Truncate(at=CONTENT).sentence(lambda name: name.lower()) == (
        "Returns `content` in windows of 10000 characters (`maxlength`); while `hasMore` is true, "
        "call again with `startindex` = `nextIndex`."
    )


@pytest.mark.fault(40, "inside")
@given(
    TEXTS,
    st.integers(1, 400),
    st.none() | st.integers(250, 1500),
    st.sampled_from(["start", "end"]),
    st.sampled_from(["none", "word"]),
    st.booleans(),
)
def test_windows_rejoin_to_exactly_the_text(
    text: str, length: int, bound: int | None, side: Any, boundary: Any, field: bool
) -> None:
    step = Truncate(at=CONTENT if field else Path(), from_=side, boundary=boundary)
    content: Any = {"content": text, "n": 1} if field else text
    raw = json.dumps(content, ensure_ascii=False).encode()
    rejoined, start = "", 0
    while True:
        step_call = call(bound=bound, maxLength=length, startIndex=start)
        output = shaped(raw, step, at=step_call)
        value = json.loads(output)
        notice = (
            value.get("truncation") if field else step_call.notices and step_call.notices[0].value
        )
        part = value["content"] if field else value
        rejoined = rejoined + part if side == "start" else part + rejoined
        if not notice:
            break
        beside = 0 if field else len(json.dumps(notice))
        assert bound is None or len(output) + beside <= bound + 20 or len(part) == 1
        assert notice["endIndex"] - notice["startIndex"] == len(part)
        if bound is None and boundary == "none":
            assert notice["endIndex"] == min(start + length, len(text))
        if not notice["hasMore"]:
            assert "nextIndex" not in notice
            break
        assert notice["nextIndex"] == notice["endIndex"] > start
        start = notice["nextIndex"]
    assert rejoined == text
