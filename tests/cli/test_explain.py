"""`explain`: the steps with their bytes, why a rule applies, what each kind of client shows."""

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.replay import exchanges
from mcp_abridge.replay.account import account_of
from mcp_abridge.replay.answers import read
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection

from tests.builders import answer, call, document, line, rules, tool_result
from tests.cli.conftest import Printed, Run
from tests.faults.scale import scaled
from tests.rulecases import PYTHON
from tests.talk import Talk

RULES = """\
version: 1
rules:
  - name: issues
    tools: list
    when: "state != 'all'"
    response:
      - drop: [items.body, gone.field]
      - paginate: {at: items, limit: 2}
  - {name: every issue, tools: list, response: [{drop: gone}]}
  - {name: log, tools: log, response: [{truncate: {max_length: 10}}]}
  - {name: bound, tools: [long, mirrored], max_bytes: 1000}
  - {name: broken, tools: broken, response: [{drop: b}, {jmespath: 'abs(a)'}]}
  - {name: hidden, tools: gone, hide: true}
"""
STEPS = """
- tools: read
  name: reading
  arguments: {limit: {type: integer, maximum: 5}}
  response: [{drop: [b, gone]}]
  errors:
    - recast:
        unless: code
        common: {from: rules}
        vocabulary: {code: [lock, limit]}
        cases: [{match: '^(?P<code>lock|limit): (?P<why>.*)', to: {code: '{code}', why: '{why}'}}]
    - clip: {at: gone.why, max_chars: 12}
  output_schema: {type: object, properties: {a: {maximum: 5}}}
  validate: refuse
"""
ITEMS = {"items": [{"id": n, "body": "x" * 100} for n in range(5)]}


def record(tool: str, result: dict[str, Any], arguments: dict[str, Any] | None = None) -> None:
    recorded = {"request": call(tool, arguments).decode(), "response": answer(result).decode()}
    Path("recorded.json").write_text(json.dumps(recorded))


class Explain:
    """The verb, in a folder with rules and a recorded call."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def run(self, *words: str, code: int = 0) -> Printed:
        return self._run("explain", "rules.yaml", "recorded.json", *words, code=code)

    def text(self, *words: str) -> str:
        return self.run(*words).out

    def json(self, *words: str) -> Any:
        return json.loads(self.text("--json", *words))


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Explain:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("rules.yaml").write_text(RULES)
    return Explain(run)


def test_each_step_is_listed_with_its_bytes_and_unmatched_paths(verb: Explain) -> None:
    record("list", document(ITEMS, structured=True))

    result = verb.json()

    received, dropped, paged = result["steps"]
    size = len(json.dumps(ITEMS, separators=(",", ":")))
    sizes = dict.fromkeys(("visible", "structured", "text"), size)
    sizes["wire"] = len(answer(document(ITEMS, structured=True)))
    head = {"step": "received", "key": None, "said": None}
    assert received == {**head, **sizes, "missing": [], "warnings": []}
    after = document({"items": [{"id": n} for n in range(5)]}, structured=True)
    assert (dropped["step"], dropped["missing"]) == ("drop", ["gone.field"])
    assert dropped["wire"] == len(answer(after))
    assert (paged["step"], paged["missing"]) == ("paginate", [])
    assert (result["outcome"], result["missing"]) == ("shaped", ["gone.field"])
    assert result["after"] == {key: paged[key] for key in result["after"]}


def test_every_rule_is_listed_with_the_reason_why_it_does_not_apply(verb: Explain) -> None:
    record("log", document(ITEMS))

    result = verb.json("--tool", "list", "--arguments", '{"state": "all"}')

    assert (result["tool"], result["rule"]) == ("list", "every issue")
    reason = "`when` is not true of the arguments: state != 'all'"
    assert result["rules"][:3] == [
        {"name": "issues", "place": "rules.yaml:3", "applies": False, "reason": reason},
        {"name": "every issue", "place": "rules.yaml:9", "applies": True, "reason": ""},
        {"name": "log", "place": "rules.yaml:10", "applies": False, "reason": "it is for log"},
    ]


@pytest.mark.parametrize(
    ("result", "kind", "copies"),
    [
        (document(ITEMS, structured=True), "JSON", ["structuredContent", "content block 1"]),
        (tool_result('"a"'), "text", ["content block 1, as a JSON string"]),
        (tool_result("[1]", "[2]"), "JSON", ["content blocks 1, 2, an element each"]),
        (
            tool_result("a", structuredContent={"result": "a"}),
            "text",
            ["the member 'result' of structuredContent", "content block 1"],
        ),
        ({"content": []}, None, []),
    ],
)
def test_the_position_of_the_document_is_printed(
    result: dict[str, Any], kind: str | None, copies: list[str]
) -> None:
    place = account(rules("- {tools: read, response: [{drop: b}]}"), answer(result))["document"]
    assert place == (kind and {"kind": kind, "copies": copies})


def test_both_kinds_of_clients_are_shown_with_the_first_lines(verb: Explain) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    record("other", tool_result(text, "x" * 500, structuredContent={"lines": 20}))
    views = verb.json()["shown"]
    assert views["structured"] == {"bytes": 12, "tokens": 5, "lines": ['{"lines":20}']}
    assert views["text"]["bytes"] == len(text) + 500
    assert views["text"]["lines"][:2] == ["line 0", "line 1"]
    assert views["text"]["lines"][-1] == "… (+14 lines)"


def test_clients_whose_limit_is_overrun_are_listed_before_and_after(
    verb: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    record("long", document({"items": ["x" * 20] * 2_100}))

    clients = {each["client"]: each for each in verb.json()["clients"]}
    codex = clients["codex*"]
    assert (codex["limit"], codex["over_before"], codex["over_after"]) == (48_000, True, False)
    assert codex["beyond"] == "loses its middle"
    assert codex["before"] > 48_000 > codex["after"]
    assert not clients["claude-code*"]["over_before"]
    monkeypatch.setenv("MAX_MCP_OUTPUT_TOKENS", "20000")
    assert {each["client"]: each for each in verb.json()["clients"]}["claude-code*"]["over_before"]


def test_a_failing_step_is_reported_and_the_original_goes_out(verb: Explain) -> None:
    record("broken", document({"a": "text", "b": 1}))

    result = verb.json()

    assert result["before"] == result["after"]
    assert result["steps"][1]["said"] is None
    assert result["steps"][2]["said"].startswith("broken: failed at jmespath: ")
    assert result["log"] == [result["steps"][2]["said"]]


def test_the_keys_of_the_json_stay(verb: Explain) -> None:
    keys = ["file", "tool", "arguments", "upstream", "rule", "rules", "guard", "document"]
    keys += ["outcome", "steps", "missing", "notices", "warnings", "vocabulary"]
    keys += ["drawings", "log", "before", "after", "shown", "clients"]
    outcomes = {"list": "shaped", "other": "untouched", "gone": "hidden", "broken": "failed"}

    for tool, outcome in outcomes.items():
        record(tool, document(ITEMS))
        result = verb.json()
        assert (list(result), result["outcome"]) == (keys, outcome)


def test_explain_prints_the_way_from_the_call_to_the_model(verb: Explain) -> None:
    items = [{"id": n, "body": "x" * 1000} for n in range(60)]
    record("list", document({"items": items}), {"limit": 1})

    out = verb.text()

    lines = [text.rstrip() for text in out.splitlines()]
    assert lines[:8] == [
        'list({"limit": 1})',
        "the server sees: {}",
        "rule issues (rules.yaml:3) applies",
        "rule every issue (rules.yaml:9) does not: issues comes first",
        "4 rules for other tools",
        "document: JSON, content block 1",
        "outcome: shaped",
        "",
    ]
    cells = [text.split() for text in lines]
    assert [row[3:] for row in cells if row[:1] == ["drop"]] == [["gone.field"]]
    assert "what the model reads in every client, " in out
    assert '  {"items":[{"id":0}],"pagination":{"total":60,' in out
    assert ["codex*", "48,000"] in [row[:2] for row in cells]


@pytest.mark.parametrize(
    ("step", "remark"),
    [
        (
            "{filter: {at: issues, where: 'status == \"in progress\"'}}",
            "filter: where: no element has 'in progress'; members: id, status; "
            "did you mean the text 'in progress', in single quotes?",
        ),
        (
            "{jmespath: 'issue[0]'}",
            "jmespath: jmespath: there is no 'issue'; members: issues; did you mean 'issues'?",
        ),
        (
            "{filter: {at: issues, where: \"id == '1'\"}}",
            "filter: where: id is a number: write `1`",
        ),
    ],
)
def test_a_member_that_no_element_has_is_remarked_at_the_step_that_asks_for_it(
    step: str, remark: str
) -> None:
    ruleset = rules(f"- {{tools: read, response: [{{rename: {{items: issues}}}}, {step}]}}")
    items = document({"items": [{"id": 1, "status": "in progress"}]})
    *_, last = account(ruleset, answer(items))["steps"]
    assert f"{last['step']}: {last['said']}" == remark


def test_control_characters_are_not_printed(verb: Explain) -> None:
    record("other", tool_result("a\x1b[31mb [bold]c"))

    out = verb.text()

    assert "  a\\x1b[31mb [bold]c\n" in out
    assert "no rule applies, so that the budget does\n" in out
    assert "no known client's limit is overrun, before or after\n" in out


def test_a_notice_beside_the_document_is_printed(verb: Explain) -> None:
    record("log", tool_result("a text of more than ten characters"))

    assert '"totalLength": 34' in verb.text().partition("notice beside the document: {")[2]


def test_an_unusable_recording_is_reported(verb: Explain) -> None:
    error = "mcp-abridge explain: recorded.json: "
    assert verb.run(code=2) == ("", f"{error}No such file or directory\n")
    for raw, message in (
        (b"not json", "no call is recorded here; name its tool: --tool"),
        (b"\xff", "neither JSON nor a text in UTF-8: "),
    ):
        Path("recorded.json").write_bytes(raw)
        assert verb.run(code=2).err.startswith(error + message)


def test_the_query_result_and_decision_of_a_guard_are_printed(verb: Explain) -> None:
    Path("rules.yaml").write_text((PYTHON / "rules.yaml").read_text())
    Path("own.py").write_text((PYTHON / "own.py").read_text())
    record("remove", document({"a": 1}), {"path": "x"})

    def lines_of(*words: str) -> list[str]:
        lines = verb.text("--allow-python", *words).splitlines()
        return [text for text in lines if text.startswith(("guard", "warning", "outcome", "log"))]

    assert lines_of("--found", "yes") == [
        'guard careful, asks: {"tool": "may", "arguments": {"path": "x"}}',
        'guard careful, found: {"document": "yes"}',
        'guard careful, decision: "forward"',
        'guard careful, facts: {"asked": "may"}',
        "outcome: shaped",
    ]
    assert lines_of("--found", '{"no": true}')[2:] == [
        'guard careful, decision: "answer"',
        "outcome: answered",
    ]
    _, result, *_, warning = lines_of()
    assert result == 'guard careful, found: {"failure": "no answer in time"}'
    assert warning == "warning (not asked): no answer in time"


def test_arguments_that_are_no_object_are_a_mistake(verb: Explain) -> None:
    record("list", tool_result("a"))
    for text in ("[1]", "{"):
        assert "argument --arguments: " in verb.run("--arguments", text, code=2).err


LOCK = tool_result("lock: try again", isError=True)


def account(
    ruleset: RuleSet, raw: bytes, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    both = {"request": call("read", arguments).decode(), "response": raw.decode()}
    return account_of(Replay(ruleset, exchanges.recorded(json.dumps(both).encode())))


def error(message: str) -> bytes:
    return line(id=1, error={"code": -32603, "message": message})


A = {"a": 6, "b": 1}
CHECK, ERRORS = ["response: drop", "response: contract"], ["errors: recast", "errors: clip"]


@pytest.mark.parametrize(
    ("raw", "arguments", "outcome", "place", "steps"),
    [
        (answer(LOCK), {}, "error", "content block 1", ["None: received", *ERRORS]),
        (error("lock: try"), {}, "error", "the message of the error", ["None: received", *ERRORS]),
        (answer(document(A)), {"limit": 6}, "refused", "the refusal", ["None: refused", *ERRORS]),
        (
            answer(document(A)),
            {},
            "refused",
            "content block 1",
            ["None: received", *CHECK, *ERRORS],
        ),
    ],
    ids=["result", "error", "refusal", "contract"],
)
def test_an_error_is_followed_through_the_steps_for_errors(
    raw: bytes, arguments: dict[str, Any], outcome: str, place: str, steps: list[str]
) -> None:
    result = account(rules(STEPS), raw, arguments)
    assert (result["outcome"], result["document"]["copies"]) == (outcome, [place])
    assert [f"{step['key']}: {step['step']}" for step in result["steps"]] == steps
    if outcome == "error":
        assert result["missing"] == ["gone.why"]
    last = {key: result["steps"][-1][key] for key in ("wire", "visible", "structured", "text")}
    assert result["after"] == last
    if outcome == "refused" and result["upstream"] is not None:
        warning = {"kind": "contract: a maximum", "said": "a: 6 is greater than the maximum of 5"}
        contract = result["steps"][2]
        assert contract["said"] == f"the response breaks its contract: {warning['said']}"
        assert contract["warnings"] == result["warnings"] == [warning]


def test_an_error_that_no_step_is_for_has_no_steps() -> None:
    alone = rules("- {tools: read, response: [{drop: b}]}")
    for ruleset, raw in (
        (alone, answer(LOCK)),
        (alone, error("Not Found")),
        (rules(f"{STEPS}  mode: shadow\n"), answer(LOCK)),
    ):
        result = account(ruleset, raw)
        assert (result["outcome"], result["steps"]) == ("error", [])


ISSUES = [{"id": n, "title": f"Crash {n}", "body": "long text " * 40} for n in range(60)]


@pytest.mark.parametrize(
    "form",
    [
        json.dumps(ISSUES).encode(),
        b"".join(b"%d: a line of a log\n" % n for n in range(5000)),
    ],
    ids=["json", "text"],
)
def test_without_rules_explain_shows_the_effect_of_the_budget(
    form: bytes, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "answer"
    file.write_bytes(form)

    words = [(file,), ("-",), ()]
    accounts = [json.loads(run("explain", "--json", *each, stdin=form).out) for each in words]
    for account in accounts:
        assert account["outcome"] == "shaped"
        assert account["before"]["visible"] > 20_000
        assert 300 < account["after"]["visible"] <= 8000
        assert [step["step"] for step in account["steps"]] == ["received", "abridge"]
    assert accounts[1] == accounts[2] == {**accounts[0], "file": "-"}


def test_show_prints_the_model_s_view_and_nothing_else(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(ISSUES))

    options = (["--budget", "1kB"], ["--client", "codex-mcp-client"], ["--client", "claude-code"])
    small, codex, claude = (run("explain", "--show", *each, file).out for each in options)

    assert "_abridged" in json.loads(small)
    assert len(small) <= 1001 < len(codex) <= 8001
    assert "_abridged" in json.loads(claude)


def test_a_view_is_answered_as_the_next_call_would_be(run: Run) -> None:
    words = ("--show", "--view", "items[?id > 57].title")
    output = run("explain", *words, stdin=json.dumps(ISSUES).encode()).out

    assert json.loads(output) == {"view": ["Crash 58", "Crash 59"]}
    short = run("explain", "--show", "--view", "a", stdin=b'{"a":1}').out
    assert json.loads(short) == {"view": 1}


def test_of_a_rule_file_alone_the_answer_is_on_stdin(verb: Explain, run: Run) -> None:
    record("log", tool_result("a text of more than ten characters"))
    answer = Path("recorded.json").read_bytes()
    account = json.loads(run("explain", "rules.yaml", "--json", stdin=answer).out)
    assert {**account, "file": "recorded.json"} == verb.json()

    Path("role.yaml").write_text("version: 1.2\nkind: Role\nrules: []\n")
    assert json.loads(run("explain", "role.yaml", "--json").out)["file"] == "role.yaml"

    without_rules = json.loads(run("explain", "recorded.json", "--json").out)
    assert (without_rules["tool"], without_rules["rule"]) == ("log", "budget")


@pytest.mark.parametrize(
    "client", ["github-copilot", "codex", "inspector-cli", "@cline/core"][: scaled(2, 4)]
)
def test_sizes_are_those_of_a_session_with_the_client(
    client: str, tmp_path: Path, run: Run
) -> None:
    text = "".join(f"{n}: a line of a log\n" for n in range(5000))
    result = answer(tool_result(text, structuredContent={"result": text}))
    file, session = tmp_path / "0001.json", {"server": "crm", "client": client}
    (tmp_path / "session.json").write_text(json.dumps(session))
    exchange = {"request": call("read").decode(), "response": result.decode()}
    file.write_text(json.dumps(exchange))
    talk = Talk(Selection((), None, print)(None, client))
    talk.client(line(id=0, method="initialize", params={"clientInfo": {"name": client}}))
    live = read(talk.exchange(call("read"), result)).visible_size.to(client_for(client).shows)

    account = json.loads(run("explain", "--client", client, "--json", file).out)
    of_clients = json.loads(run("explain", "--json", file).out)["clients"]
    rows = [row["after"] for row in of_clients if fnmatch(client, row["client"])]
    [tool] = json.loads(run("replay", "--json", tmp_path).out)["tools"]
    [weight] = json.loads(run("weigh", "--json", tmp_path).out)
    sizes = account["after"]["visible"], tool["after"], weight["in_budget"]
    assert {*sizes, *rows} == {live}


def test_options_may_stand_between_the_rules_and_the_file(tmp_path: Path, run: Run) -> None:
    rules, file = tmp_path / "rules.yaml", tmp_path / "answer.json"
    rules.write_text("version: 1\nrules: [{tools: list_issues, response: [{keep: [id]}]}]\n")
    file.write_text(json.dumps(ISSUES))

    out, error = run("explain", rules, "--tool", "list_issues", file, "--show")

    assert error == ""
    assert json.loads(out) == [{"id": issue["id"]} for issue in ISSUES]


def test_a_file_is_followed_as_a_resource_that_is_read(tmp_path: Path, run: Run) -> None:
    file, uri = tmp_path / "resources.yaml", "file:///x.log"
    file.write_text("version: 1\nrules: [{name: files, resources: 'file:///*'}]\n")
    text = "".join(f"line {n} of many\n" for n in range(2000)).encode()
    words = ("explain", str(file), "--resource", uri)
    out = run(*words, stdin=text).out
    assert f'resources/read({{"uri": "{uri}"}})' in out
    assert "rule files (" in out
    assert f"read {uri}#view=text%5B" in out
    view = ("--view", "lines(7, 7)", "--show")
    assert run(*words, *view, stdin=text).out.startswith("line 6 of many\n")
    contents = {"contents": [{"uri": uri, "text": text.decode()}]}
    recording = {
        "request": {"id": 1, "method": "resources/read", "params": {"uri": uri}},
        "response": {"jsonrpc": "2.0", "id": 1, "result": contents},
    }
    assert run("explain", str(file), stdin=json.dumps(recording).encode()).out == out


def test_without_a_file_and_with_nothing_on_stdin_one_is_asked_for(run: Run) -> None:
    assert run("explain", code=2, stdin=b"").err.endswith(
        ": name a file with an answer, or pipe one\n"
    )
