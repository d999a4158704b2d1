"""Raises at every call that the proxy makes while it shapes an answer: one right answer goes out.

Right are the answer that the rule makes, since some faults are got over, and the one that came; for
a rule that withholds, and where nothing came, an error in place of the latter.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape
from msgspec.structs import replace

from tests.builders import answer, call, document, line, rule, rules, texts, tool_result
from tests.faults.injector import Injector
from tests.faults.scale import scaled
from tests.talk import Talk

DEEP = scaled(1, 50)  # times that one place fails, if it is come to several times
SECRET = "secret"
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
ROWS = [{"id": n, "name": f"n{n}", "path": f"a/{n}.md", "tags": ["x", "y", "z"]} for n in range(6)]
ITEMS = {"items": ROWS, "note": "one\ntwo\nthree", "extra": {"a": 1, "b": None}, "secret": SECRET}
CONTRACT = "output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}"
ARGUMENTS = {"limit": 2, "offset": 0, "pattern": "a/*.md", "maxLength": 10, "startIndex": 0}


def job(text: str, value: dict[str, Any] | bytes, **members: Any) -> ShapeJob:
    raw = value if isinstance(value, bytes) else answer(value)
    return ShapeJob(rule=rule(text), tool="t", id=b"1", raw=raw, arguments=ARGUMENTS, **members)


def later(text: str, value: dict[str, Any], **members: Any) -> ShapeJob:
    """Return the job of a later page or view of the same call."""
    first = shape(job(text, value, keep=True))
    assert first.snapshot is not None
    return ShapeJob(rule=rule(text), tool="t", id=b"2", snapshot=first.snapshot, **members)


OBJECTS = """
response:
  - keep: [items, note, extra]
  - drop: [extra.a]
  - rename: {extra: more}
  - project: {at: items, fields: [id, {title: name}, {size: {jmespath: length(tags)}}, tags]}
"""
LINES = "response: [{parse: {as: lines}}, {paginate: {as: lines, limit: 2}}]"
PAGES = "response: [{drop: secret}, {paginate: {at: items, limit: 2}}]"
WINDOW = "response: [{truncate: {at: note, max_length: 5}}]"
BOUND = "max_bytes: 300"
ERRORS = "error_if: extra\nerrors: [{recast: {cases: [{match: '.', to: {code: bad}}]}}]"
MEMBER = tool_result('{"items":[1,2,3]}', structuredContent={"result": '{"items":[1,2,3]}'})
MASKED = rb'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"a\":1,\"b\":'
MASKED += rb'\"\ud800\"}"}],"_meta":{"x":"\uD83D"}}}'

# Rules that may let what came go out. All steps fail alike: a few stand for them.
OPEN = {
    "objects": job(OBJECTS, document(ITEMS)),
    "lines": job(LINES, tool_result("one\ntwo\nthree\nfour"), keep=True),
    "a page": job(PAGES, document(ITEMS, structured=True), keep=True),
    "a window": job(WINDOW, document(ITEMS), keep=True),
    "a bound with prose": job(BOUND, tool_result("prose " * 99, json.dumps(ITEMS)), keep=True),
    "a view": job(BOUND, document(ITEMS), keep=True, view="items[1:3].id"),
    "an error by its document": job(ERRORS, document(ITEMS)),
    "an error response": job(ERRORS, line(id=1, error={"code": 1, "message": "no"})),
    "a broken contract": job(f"{CONTRACT}\nvalidate: warn", document({"n": "x"})),
    "a promise": job(CONTRACT, tool_result("words", "more words")),
    "a member": job("response: [{elide: {at: items, first: 1}}]", MEMBER),
    "blocks": job(
        "document: blocks\nresponse: [{clip: {max_chars: 2}}]", tool_result("abc", "def")
    ),
    "each block": job("response: [{drop: b}]", tool_result('{"a":1,"b":2}', '{"a":3}')),
    "a layout": job(
        "layout: as_sent\nresponse: [{drop: n}]", tool_result('{\n  "n": 1,\n  "m": 2\n}')
    ),
    "half characters": job("response: [{drop: a}]", MASKED),
    "shadow": job(f"mode: shadow\n{PAGES}", document(ITEMS)),
    "another shape": job("response: [{keep: gone}]", document(ITEMS)),
    "emptied": job("response: [{drop: '*'}]", document(ITEMS)),
    "failing": job("response: [{jmespath: abs(note)}]", document(ITEMS)),
    "no document": job(PAGES, {"content": [IMAGE]}),
    "unreadable": job(PAGES, {"content": 5}),
}
REFUSE = "on_failure: refuse"
SECRETS = document({"items": [1], "secret": SECRET})
# Rules that withhold the answer if they fail.
CLOSED = {
    "a page": job(f"{REFUSE}\n{PAGES}", document(ITEMS, structured=True), keep=True),
    "a bound": job(f"{REFUSE}\n{BOUND}\nresponse: [{{drop: secret}}]", document(ITEMS), keep=True),
    "failing": job(f"{REFUSE}\nresponse: [{{jmespath: abs(note)}}]", document(ITEMS)),
    "failing with errors": job(
        f"{REFUSE}\n{ERRORS}\nresponse: [{{jmespath: abs(secret)}}]", SECRETS
    ),
    "another shape": job(f"{REFUSE}\nresponse: [{{keep: gone}}]", SECRETS),
    "emptied": job(f"{REFUSE}\nresponse: [{{drop: '*'}}]", document({"secret": SECRET})),
    "no document": job(f"{REFUSE}\n{PAGES}", tool_result(SECRET, SECRET)),
    "unreadable": job(f"{REFUSE}\n{PAGES}", {"content": [5, SECRET]}),
    "a broken contract": job(f"{CONTRACT}\nvalidate: refuse", document({"n": True, "m": SECRET})),
    "half characters": job(
        f"{REFUSE}\nresponse: [{{drop: b}}]", MASKED.replace(b"ud800", b"ud800secret")
    ),
}
# What is cut from something that is kept: nothing came.
# The steps after the first one that leaves something out are run again.
LATER = "response: [{elide: {at: items, first: 1}}, {jmespath: {at: n, expression: %s}}]"
LATER_PARTS = {
    "a page": later(PAGES, document(ITEMS), arguments={"limit": 2, "offset": 2}),
    "a window": later(WINDOW, document(ITEMS), arguments={"maxLength": 5, "startIndex": 5}),
    "a view": later(BOUND, document(ITEMS), view="items[1:3].id"),
    "a view that is too long": later(BOUND, document(ITEMS), view="items"),
    "failing": replace(
        later(LATER % "abs(@)", document({"items": [1, 2], "n": 1})), rule=rule(LATER % "keys(@)")
    ),
    "a promise": later(
        f"{CONTRACT}\n{PAGES}", document(ITEMS), arguments={"limit": 2, "offset": 2}
    ),
}


# They run through the summary, where hundreds of places can fail; "half characters" does, too.
LONGEST = ("a bound", "a bound with prose", "a view", "a view that is too long")


def params(jobs: dict[str, ShapeJob]) -> list[Any]:
    return [
        pytest.param(job, id=name, marks=pytest.mark.long if name in LONGEST else [])
        for name, job in jobs.items()
    ]


def outcomes(job: ShapeJob) -> Iterator[tuple[Any, ShapeResult]]:
    """Yield the outcome of a job for each place at which something fails, with the place."""
    injector = Injector(DEEP)
    while True:
        with injector.armed():
            outcome = shape(job)
        if injector.raised is None:
            assert injector.places, "nothing has failed"
            print(f"{len(injector.places)} places")
            return
        yield injector.raised, outcome


def is_error(raw: bytes, id: int) -> bool:
    response = json.loads(raw)
    return bool(response["id"] == id and response["result"].get("isError") is True)


def alike(job: ShapeJob, raw: bytes, *right: bytes) -> bool:
    """Return True if an answer is one of the right ones.

    The structuredContent that is promised may be missing, or be the text, if it cannot be made.
    """
    if raw in right or not job.rule.structures:
        return raw in right
    response, promised = bare(raw)
    return any(
        response == expected and promised in (None, {"text": texts(each)[0]}, structured)
        for each in right
        for expected, structured in [bare(each)]
    )


def bare(raw: bytes) -> tuple[Any, Any]:
    """Return an answer without its structuredContent, and that."""
    response = json.loads(raw)
    return response, response["result"].pop("structuredContent", None)


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("job", params(OPEN))
def test_a_failure_anywhere_leaves_the_shaped_or_the_original_answer(job: ShapeJob) -> None:
    assert job.raw is not None
    right = job.raw, shape(job).raw
    for place, outcome in outcomes(job):
        # That a view cannot be had is an answer too.
        is_refusal = job.view is not None and is_error(outcome.raw, 1)
        assert is_refusal or alike(job, outcome.raw, *right), place


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("job", params(CLOSED))
def test_a_failure_anywhere_in_a_rule_that_withholds_leaks_nothing(job: ShapeJob) -> None:
    right = shape(job).raw
    assert SECRET not in right.decode()
    for place, outcome in outcomes(job):
        assert is_error(outcome.raw, 1) or alike(job, outcome.raw, right), place
        assert SECRET not in outcome.raw.decode(), place


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("job", params(LATER_PARTS))
def test_a_failure_anywhere_leaves_a_right_page_or_view_or_an_error(job: ShapeJob) -> None:
    right = shape(job).raw
    for place, outcome in outcomes(job):
        assert is_error(outcome.raw, 2) or alike(job, outcome.raw, right), place


SESSION = """
- {name: closed, tools: read, on_failure: refuse, response: [{drop: secret}]}
- {name: promised, tools: job, output_schema: {type: object}, validate: warn}
- {name: hidden, tools: gone, hide: true}
- {name: few, tools: few, arguments: {n: {minimum: 1, maximum: 3}}}
"""
LISTED = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("few", "gone")]}
# A request, and the result of the server, if it is asked.
SCENES: dict[str, tuple[bytes, Any]] = {
    "a ping": (line(id=1, method="ping"), {}),
    "the list of tools": (line(id=1, method="tools/list"), LISTED),
    "a rule that withholds": (call("read"), document({"open": 1, "secret": SECRET})),
    "an answer that it cannot read": (call("read"), {"content": SECRET}),
    "a promise": (call("job"), document({"n": 1})),
    "a hidden tool": (call("gone"), None),
    "a wrong argument": (call("few", {"n": 4}), None),
    "no rule": (call("other"), tool_result("done")),
}


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize(("raw", "result"), SCENES.values(), ids=SCENES)
def test_a_failure_anywhere_in_a_session_leaves_one_answer_and_the_next_call_works(
    raw: bytes, result: Any
) -> None:
    talk = Talk(rules(SESSION))

    def exchange() -> bytes:
        """Make the request, and answer it if it goes on; return the one answer."""
        server_count, client_count = len(talk.to_server), len(talk.to_client)
        talk.client(raw)
        if talk.to_server[server_count:]:
            talk.server(answer(result))
        [response] = talk.to_client[client_count:]
        return response

    expected, injector = exchange(), Injector()
    closed = result is None or SECRET in str(result) or result is LISTED
    right = [expected] if closed else [expected, answer(result)]
    while True:
        with injector.armed():
            response = exchange()
        if injector.raised is None:
            break
        assert response in right or "error" in json.loads(response) or is_error(response, 1), (
            injector.raised
        )
        assert SECRET not in response.decode()
        assert exchange() == expected, injector.raised
    assert injector.places
