"""Redaction: which members and texts are masked, and that nothing else of a message changes."""

import json
import time

import pytest
from mcp_abridge.storage.redaction import Redaction

from tests.builders import answer, call, line
from tests.faults.scale import scaled

MASKED = Redaction(["password", "api_key", "sk-[a-z0-9]+"])


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password: hunter two\nnext", "password: ***\nnext"),
        ("GET /?a=1&password=x&b=2", "GET /?a=1&password=***&b=2"),
        ("{'password': 'abc'}", "{'password': '***'}"),
        ('{"password": "a \\" b", "n": 1}\n{"n": 2}', '{"password": "***", "n": 1}\n{"n": 2}'),
        ('{"password": 12, "n": 1}\n{"n": 2}', '{"password": "***", "n": 1}\n{"n": 2}'),
        ('{\n  "API_KEY": {"a": 1},\n  "n": 1.0\n}', '{\n  "API_KEY": "***",\n  "n": 1.0\n}'),
        ('["sk-ab1", "task"]', '["***","task"]'),
        ('{"spaced" : 1.0}', '{"spaced" : 1.0}'),
        ("my passwords are long", "my passwords are long"),
    ],
)
def test_texts_and_the_json_in_them_are_masked(text: str, masked: str) -> None:
    assert MASKED.text(text) == masked


SECRET = 'hunter2 and " , more'
FORMS = {
    "JSON cut in a text": '{"a": 1, "password": "hunt',
    "JSON cut after it": '{"a": [{"password": $, "b": "x',
    "JSON cut in an object": '{"password": {"x": $, "b": [1, "hunter2',
    "lines of JSON": '{"a": 1}\n{"password": $}\n',
    "JSON in a JSON string": json.dumps({"log": "got " + json.dumps({"password": SECRET})}),
    "JSON in JSON in a string": json.dumps(json.dumps(json.dumps({"password": SECRET}))),
    "cut JSON in a JSON string": json.dumps({"log": json.dumps({"password": SECRET})})[:-4],
    "an array of JSON in a string": json.dumps("x " + json.dumps({"passwords": [SECRET, 1]})),
    "a block of YAML": "a: 1\npassword: |\n  hunter2\n\n  hunter2\nb: 2\n",
    "a folded block of YAML": "- password: >-\n    hunter2\n  b: 2\n",
    "a long text of YAML": 'a:\n  password: "hunter2 \\\n    hunter2"\n  b: 2\n',
    "a list of YAML": "passwords:\n- hunter2\n- hunter2\nb: 2\n",
    "an object of YAML": "  password:\n    old: hunter2\n    new: hunter2\n  b: 2\n",
    "YAML": "db:\n  password: hunter2 # x\n  b: 2\n",
    "CSV": 'id,Password,b\n1,hunter2,2\n2,"hunter2, ""x""",2\n',
    "CSV of lines in cells": 'id,password,b\r\n1,"hunter2\nhunter2",2\r\n',
    "CSV after a title": "Users:\nid;password\n1;hunter2\n",
    "TSV": "id\tdb_password\tb\n1\thunter2\t2\n",
    "a table of Markdown": "# x\n\n| id | Password |\n|---|:--|\n| 1 | hunter2 |\n\nb: 2\n",
    "a table of psql": " id | password \n----+----------\n  1 | hunter2\n(1 row)\n",
    "a flag": "tool --password hunter2 --b 2",
    "a quoted flag": "tool --db-password 'hunter2 x' --b 2",
    "a flag with a sign": "tool --password=hunter2",
    "a flag in an array": '{"args": ["--password", $, "--b"]}',
    "a variable": "A=1\nexport DB_PASSWORD=hunter2\nPGPASSWORD=hunter2\nB=2",
    "a member of several words": '{"userPassword": $, "b": 2}',
    "plurals": '{"passwords": [$], "b": 2}',
    "a name and a value": '[{"name": "DB_PASSWORD", "value": $}, {"b": 2}]',
    "a name and a value in YAML": "- name: password\n  value: hunter2\n- b: 2\n",
    "a name and a value in cut JSON": '[{"name": "password", "value": "hunter2", "b": 2}, {"',
    "a header": "Password: hunter2\r\nb: 2\r\n",
    "a link": "https://host/?password=hunter2&b=2",
    "emphasis": "**Password:** hunter2\nb: 2",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_password_is_masked_in_whatever_form_it_stands(form: str) -> None:
    text = FORMS[form].replace("$", json.dumps(SECRET))
    masked = Redaction(["password"]).text(text)
    assert "hunt" not in masked
    assert "more" not in masked
    assert masked.count("***") <= 3
    for rest in ("b: 2", "--b 2", "&b=2", "B=2", '"b": 2', ",2\n", ",2\r\n", "\t2\n", "(1 row)"):
        assert (rest in masked) == (rest in text) or (rest == '"b": 2' and '"b":2' in masked)


@pytest.mark.parametrize(
    ("word", "hidden", "visible"),
    [
        (
            "token",
            ("token", "TOKEN", "tokens", "accessToken", "api-token", "authtoken", "x_auth_token"),
            (
                *("next_page_token", "nextPageToken", "pageToken", "nextToken", "syncToken"),
                *("continuation_token", "tokenizer", "token_type", "broken"),
            ),
        ),
        ("*token*", ("next_page_token", "token_type", "tokens", "tokenizer"), ("tok_en",)),
        ("next_page_token", ("next_page_token", "NEXT_PAGE_TOKEN"), ("page_token", "token")),
        ("api_key", ("api_key", "apiKey", "X-API-Key", "apikey", "API_KEYS"), ("key", "api")),
        ("id", ("id", "ids", "userId"), ("paid", "valid", "ideas")),
        (".*pass.*", ("db_pass", "passphrase"), ("pas", "user")),
    ],
)
def test_a_word_hides_its_plural_and_names_that_end_with_it_but_no_page(
    word: str, hidden: tuple[str, ...], visible: tuple[str, ...]
) -> None:
    redaction = Redaction([word])
    for name in (*hidden, *visible):
        raw = json.dumps({"content": [], "structuredContent": {"a": {name: "hunter2"}}})
        response = answer(json.loads(raw))
        assert (b"hunter2" in redaction.response(response)) == (name in visible), name
        if not word.startswith("."):
            assert ("hunter2" in redaction.text(f"{name}=hunter2")) == (name in visible), name


def test_what_a_user_types_for_a_server_is_masked() -> None:
    typed = {"who": {"action": "accept", "content": {"password": "hunter2"}}}
    params = {"name": "password", "arguments": {}, "inputResponses": typed, "requestState": "s"}
    masked = json.loads(Redaction(["password"]).request(line(method="tools/call", params=params)))
    typed["who"]["content"] = {"password": "***"}
    assert masked["params"] == params


def test_numbers_of_things_are_no_secrets() -> None:
    redaction = Redaction(["token"])
    text = '{"max_tokens":4000,"tokens":["a"],"token":5}'
    assert redaction.text(text) == '{"max_tokens":4000,"tokens":"***","token":"***"}'
    assert redaction.text("max_tokens: 4000\ntoken: 5") == "max_tokens: 4000\ntoken: ***"


def test_a_name_that_a_pattern_matches_is_masked_with_its_value() -> None:
    redaction = Redaction([r"[\w.]+@[\w.]+"])
    text = '{"a@example.org":{"age":5},"b@example.org":1,"to b@example.org":2}'
    assert redaction.text(text) == '{"***":"***","****":"***","to ***":2}'


def test_no_text_takes_more_than_linear_time() -> None:
    redaction = Redaction(["password", "token"])
    units = ("ü password ", "ü password: b\n", "password,a\n", 'password,"\n', '"password": [')
    more = ("password:\n", "password: |\n b\n", "x", 'password="' + "\\" * 60_000)
    size = scaled(60_000, 100_000)
    for unit in (*units, *more):
        started = time.process_time()
        redaction.text(unit * (size // len(unit)))
        assert time.process_time() - started < 3, unit


def test_members_that_a_reader_needs_stay_in_a_message() -> None:
    everything = Redaction(["id", "name", "method", "tools", "result"])
    request = call("t", {"id": 1, "deep": [{"name": [2]}]}, id=7)
    assert everything.request(request) == call("t", {"id": "***", "deep": [{"name": "***"}]}, id=7)
    response = answer({"content": [{"type": "text", "text": '{"id":5}'}], "id": 3}, 7)
    masked = answer({"content": [{"type": "text", "text": '{"id":"***"}'}], "id": "***"}, 7)
    assert everything.response(response) == masked
    error = line(id=7, error={"code": 1, "message": "no id: 5"})
    assert everything.response(error) == line(id=7, error={"code": 1, "message": "no id: ***"})
