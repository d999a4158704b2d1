"""`explain`: the steps with their bytes, why a rule applies, what each kind of client shows."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from proxy.cli import explain
from tests.given import answer, call, document, line, said
from tests.rulecases import PYTHON

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
ERRORS = """\
version: 1
rules:
  - tools: read
    arguments: {limit: {maximum: 5}}
    response: [{drop: b}]
    errors:
      - recast:
          vocabulary: {code: [lock, limit]}
          cases: [{match: '^(?P<code>lock|limit): (?P<why>.*)', to: {code: "{code}", why: "{why}"}}]
      - clip: {at: gone.why, max_chars: 12}
    output_schema: {type: object, properties: {a: {maximum: 5}}}
    validate: refuse
"""
ITEMS = {"items": [{"id": n, "body": "x" * 100} for n in range(5)]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def record(
    tool: str, result: dict[str, Any] | bytes, arguments: dict[str, Any] | None = None
) -> None:
    raw = result if isinstance(result, bytes) else answer(result)
    recorded = {"request": call(tool, arguments).decode(), "response": raw.decode()}
    Path("recorded.json").write_text(json.dumps(recorded))


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="mcp-abridge explain")
    explain.add(parser)
    return explain.run(parser.parse_args(["rules.yaml", "recorded.json", *words]))


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run("--json", *words) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(*words) == 0
    return capsys.readouterr().out


def test_each_step_is_told_with_its_bytes_and_the_paths_that_matched_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("list", document(ITEMS, structured=True))

    steps = explained(capsys)["steps"]

    assert [(step["step"], step["missing"]) for step in steps] == [
        ("received", []),
        ("drop", ["gone.field"]),
        ("paginate", []),
    ]
    raw = answer(document(ITEMS, structured=True))
    size = len(json.dumps(ITEMS, separators=(",", ":")))
    assert steps[0] == {
        "step": "received",
        "key": None,
        "wire": len(raw),
        "visible": size,
        "structured": size,
        "text": size,
        "missing": [],
        "warnings": [],
        "said": None,
    }
    dropped = {"items": [{"id": n} for n in range(5)]}
    assert steps[1]["wire"] == len(answer(document(dropped, structured=True)))
    assert steps[1]["visible"] == len(json.dumps(dropped, separators=(",", ":")))


def test_a_path_of_truncate_that_names_nothing_in_a_text_is_told_unless_the_text_is_cut(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("log", said("one two three"))
    for steps, missing in (
        ("[{truncate: {at: content, max_length: 3}}]", ["content"]),
        ("[{truncate: 3}, {truncate: {at: content, max_length: 3}}]", []),
    ):
        Path("rules.yaml").write_text(
            f"version: 1\nrules: [{{tools: log, response: {steps}}}]",
        )
        assert explained(capsys)["missing"] == missing
        assert ("matched nothing: content" in printed(capsys)) is bool(missing)


def test_an_object_that_cannot_be_paged_is_remarked_upon(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rules.yaml").write_text(
        "version: 1\nrules: [{tools: list, response: [{paginate: {as: items}}]}]"
    )
    record("list", document(ITEMS))

    said = "nothing to paginate: the document is an object; meant `at: items`?"
    assert explained(capsys)["warnings"] == [{"kind": "paginate: an object", "said": said}]
    assert said in printed(capsys)


def test_the_sizes_of_the_last_step_are_those_of_the_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("list", document(ITEMS))

    found = explained(capsys)

    last = {key: found["steps"][-1][key] for key in ("wire", "visible", "structured", "text")}
    assert found["after"] == last
    assert found["outcome"] == "shaped"
    assert found["missing"] == ["gone.field"]


def test_every_rule_is_told_with_why_it_does_not_apply(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("list", document(ITEMS), {"state": "all"})

    found = explained(capsys)

    assert found["rule"] == "every issue"
    assert found["rules"][:3] == [
        {
            "name": "issues",
            "place": "rules.yaml:3",
            "applies": False,
            "reason": "`when` is not true of the arguments: state != 'all'",
        },
        {"name": "every issue", "place": "rules.yaml:9", "applies": True, "reason": ""},
        {"name": "log", "place": "rules.yaml:10", "applies": False, "reason": "it is for log"},
    ]


def test_the_tool_and_the_arguments_can_be_other_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("list", document(ITEMS))

    found = explained(capsys, "--tool", "long", "--arguments", '{"a": 1}')

    assert (found["tool"], found["arguments"], found["rule"]) == ("long", {"a": 1}, "bound")


def test_a_later_page_is_explained_as_such(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("list", document(ITEMS))

    found = explained(capsys, "--arguments", '{"offset": 4, "limit": 1}')

    assert (found["outcome"], found["upstream"]) == ("page", {})
    assert [step["step"] for step in found["steps"]] == ["received", "drop", "paginate"]
    assert found["steps"][-1]["visible"] == found["after"]["visible"]


def test_a_view_is_explained_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("long", document({"items": ["x" * 20] * 500, "n": 7}))

    found = explained(capsys, "--arguments", '{"view": "n"}')

    assert found["outcome"] == "view"
    assert found["shown"]["text"]["lines"] == ['{"view":7}']


def test_where_the_document_stands_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forms: list[tuple[dict[str, Any], str, list[str]]] = [
        (document(ITEMS, structured=True), "JSON", ["structuredContent", "content block 1"]),
        (said("a", '{"b":1}'), "JSON", ["content block 2"]),
        (said("a"), "text", ["content block 1"]),
        (said('"a"'), "text", ["content block 1, as a JSON string"]),
        (said("[1]", "[2]"), "JSON", ["content blocks 1, 2, an element each"]),
        (
            said("a", structuredContent={"result": "a"}),
            "text",
            ["the member 'result' of structuredContent", "content block 1"],
        ),
    ]
    for result, kind, copies in forms:
        record("list", result)
        assert explained(capsys)["document"] == {"kind": kind, "copies": copies}
    record("list", {"content": []})
    assert explained(capsys)["document"] is None


def test_a_notice_beside_the_document_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("log", said("a text of more than ten characters"))

    [notice] = explained(capsys)["notices"]

    assert notice["truncation"]["totalLength"] == 34


def test_both_kinds_of_clients_are_shown_with_the_first_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"line {n}\n" for n in range(20))
    record("other", said(text, "x" * 500, structuredContent={"lines": 20}))

    shown = explained(capsys)["shown"]

    assert shown["structured"] == {"bytes": 12, "lines": ['{"lines":20}']}
    assert shown["text"]["bytes"] == len(text) + 500
    assert shown["text"]["lines"][:2] == ["line 0", "line 1"]
    assert shown["text"]["lines"][-1] == "… (+14 lines)"


def test_a_long_line_is_cut(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("other", said("x" * 500))

    assert explained(capsys)["shown"]["text"]["lines"] == ["x" * 160 + "… (+340 chars)"]


def test_clients_whose_limit_is_overrun_are_told_before_and_after(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("long", document({"items": ["x" * 20] * 500}))

    clients = {each["client"]: each for each in explained(capsys)["clients"]}

    codex = clients["codex*"]
    assert (codex["limit"], codex["over_before"], codex["over_after"]) == (10_000, True, False)
    assert codex["beyond"] == "loses its middle"
    assert codex["before"] > 10_000 > codex["after"]
    assert not clients["claude-code*"]["over_before"]


def test_a_client_that_shows_both_copies_counts_both(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("other", document({"items": ["x" * 20] * 10}, structured=True))

    found = explained(capsys)

    clients = {each["client"]: each["after"] for each in found["clients"]}
    assert clients["github-copilot*"] == 2 * clients["codex*"]


def test_a_call_that_is_refused_has_no_steps(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("gone", said("a"))

    found = explained(capsys)

    assert (found["outcome"], found["upstream"], found["steps"]) == ("hidden", None, [])
    assert found["shown"]["text"]["lines"] == ["Unknown tool: gone"]


def test_an_error_of_the_server_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("list", line(id=1, error={"code": -32603, "message": "Not Found"}))

    found = explained(capsys)

    assert (found["outcome"], found["steps"]) == ("error", [])


def test_a_step_that_fails_says_so_and_the_original_goes_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("broken", document({"a": "text", "b": 1}))

    found = explained(capsys)

    assert found["outcome"] == "failed"
    assert found["before"] == found["after"]
    assert found["steps"][1]["said"] is None
    assert found["steps"][2]["said"].startswith("broken: failed at jmespath: ")
    assert found["log"] == [found["steps"][2]["said"]]


def test_the_keys_of_the_json_stay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["file", "tool", "arguments", "upstream", "rule", "rules", "guard", "document"]
    keys += ["outcome", "steps", "missing", "notices", "warnings", "vocabulary", "log"]
    keys += ["before", "after", "shown", "clients"]

    for tool in ("list", "other", "gone", "broken"):
        record(tool, document(ITEMS))
        assert list(explained(capsys)) == keys


def test_what_is_printed_leads_from_the_call_to_what_the_model_reads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(
        "list",
        document({"items": [{"id": n, "body": "x" * 1000} for n in range(60)]}),
        {"limit": 1},
    )

    out = printed(capsys)

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
    assert "matched nothing: gone.field" in lines
    cells = [text.split() for text in lines]
    assert [row[3:] for row in cells if row[:1] == ["drop"]] == [["gone.field"]]
    assert "what the model reads in every client, " in out
    assert '  {"items":[{"id":0}],"pagination":{"total":60,' in out
    assert ["codex*", "10,000"] in [row[:2] for row in cells]


def test_a_response_that_does_not_fit_is_told_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules.yaml").write_text(
        "version: 1\nrules: [{name: r, tools: list, response: [{keep: id}, {drop: x}]}]\n"
    )
    record("list", document({"other": 1}))

    out = printed(capsys)

    assert [text for text in out.splitlines() if "left as it came" in text] == [
        "at keep: r: list: left as it came: no id in the document"
    ]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "{filter: {at: issues, where: 'status == \"in progress\"'}}",
            "where: no element of issues has 'in progress'; members: id, status; "
            "did you mean the text 'in progress', in single quotes?",
        ),
        (
            "{filter: {at: issues, where: \"stat == 'open'\"}}",
            "where: no element of issues has 'stat'; members: id, status; did you mean 'status'?",
        ),
        (
            "{filter: {at: issues, where: stat}}",
            "where: no element of issues has 'stat'; members: id, status; did you mean 'status'?",
        ),
        (
            "{jmespath: \"issues[?stat == 'open']\"}",
            "jmespath: no element of issues has 'stat'; members: id, status; "
            "did you mean 'status'?",
        ),
        (
            '{jmespath: "{n: issue[0], m: issues[*].nr}"}',
            "jmespath: no element of issues has 'nr'; members: id, status",
        ),
        (
            "{jmespath: 'issue[0]'}",
            "jmespath: the document has no 'issue'; members: issues; did you mean 'issues'?",
        ),
    ],
)
def test_a_member_that_no_element_has_is_remarked_at_the_step_that_asks_for_it(
    folder: Path, capsys: pytest.CaptureFixture[str], step: str, said: str
) -> None:
    steps = f"[{{rename: {{items: issues}}}}, {step}]"
    (folder / "rules.yaml").write_text(
        f"version: 1\nrules: [{{name: r, tools: list, response: {steps}}}]\n"
    )
    record("list", document({"items": [{"id": 1, "status": "in progress"}]}))

    out = printed(capsys)

    assert f"at {step[1:].partition(':')[0]}: {said}" in out.splitlines()


@pytest.mark.parametrize(
    "where", ["status == 'done'", "!deleted", "deleted == null", "id == argument('id')"]
)
def test_a_condition_over_members_that_are_there_or_may_be_absent_is_not_remarked(
    folder: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    (folder / "rules.yaml").write_text(
        "version: 1\nrules: [{name: r, tools: list, response: "
        f'[{{filter: {{at: items, where: "{where}"}}}}]}}]\n'
    )
    record("list", document({"items": [{"id": 1, "status": "open"}]}))

    assert [step["said"] for step in explained(capsys)["steps"]] == [None, None]


def test_what_a_terminal_would_obey_is_not_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record("other", said("a\x1b[31mb [bold]c"))

    assert "  a\N{REPLACEMENT CHARACTER}[31mb [bold]c\n" in printed(capsys)


def test_without_a_rule_that_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("other", said("a"))

    out = printed(capsys)

    assert "no rule applies: the response passes as it came\n" in out
    assert "no known client's limit is overrun, before or after\n" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "recorded.json: neither a recorded exchange nor JSON: not JSON: "),
        ("{}", "recorded.json: no call is recorded here; name its tool: --tool, or tool in a test"),
        (None, "recorded.json: No such file or directory"),
    ],
)
def test_a_recording_that_cannot_be_used_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    if text is not None:
        Path("recorded.json").write_text(text)

    assert run() == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"mcp-abridge explain: {message}")


def test_python_that_rules_name_is_run_where_that_is_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rules.yaml").write_text((PYTHON / "rules.yaml").read_text())
    Path("own.py").write_text((PYTHON / "own.py").read_text())
    record("list", document({"a": 1}))
    assert run() == 2
    assert "is Python code, which runs only with --allow-python" in capsys.readouterr().err
    found = explained(capsys, "--allow-python")
    assert [step["step"] for step in found["steps"]] == ["received", "noise", "noise", "clip"]


def test_what_a_guard_asked_found_and_decided_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rules.yaml").write_text((PYTHON / "rules.yaml").read_text())
    Path("own.py").write_text((PYTHON / "own.py").read_text())
    record("remove", document({"a": 1}), {"path": "x"})

    def said(*words: str) -> list[str]:
        lines = printed(capsys, "--allow-python", *words).splitlines()
        return [text for text in lines if text.startswith(("guard", "warning", "outcome", "log"))]

    asks = 'guard careful asks may({"path": "x"})'
    assert said("--found", "yes") == [
        asks,
        'guard careful finds: "yes"',
        "guard careful lets the call go on",
        'guard careful tells the steps: {"asked": "may"}',
        "outcome: shaped",
    ]
    assert said("--found", '{"no": true}') == [
        asks,
        'guard careful finds: {"no": true}',
        "guard careful answers the call itself",
        "outcome: answered",
    ]
    assert said() == [
        asks,
        "guard careful finds nothing: no answer in time (--found gives an answer)",
        "guard careful lets the call go on",
        "outcome: shaped",
        "warning (not asked): no answer in time",
    ]


def test_what_became_of_an_error_is_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rules.yaml").write_text(ERRORS)
    record("read", said("lock: try again", isError=True))

    out = printed(capsys)

    rows = [text.split() for text in out.splitlines()]
    assert "document: text, content block 1" in out.splitlines()
    assert [row[:2] for row in rows if row[:1] in (["received"], ["errors:"])] == [
        ["received", str(len(answer(said("lock: try again", isError=True))))],
        ["errors:", "recast"],
        ["errors:", "clip"],
    ]
    assert "words of code: lock, limit\n" in out


def test_rules_that_do_not_load_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("list", said("a"))
    Path("rules.yaml").write_text("version: 2\nrules: []\n")

    assert run() == 2

    assert capsys.readouterr().err == "rules.yaml:1:10: version: expected 1, found 2\n"


@pytest.mark.parametrize("text", ["[1]", "{", "5"])
def test_arguments_that_are_no_object_are_a_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    record("list", said("a"))

    with pytest.raises(SystemExit) as caught:
        run("--arguments", text)
    assert caught.value.code == 2
    assert "argument --arguments: " in capsys.readouterr().err
