"""The functions of the public module: what goes in comes out short, of its kind, for its caller."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge import Abridge, RuleErrors
from mcp_abridge.storage import ledger_totals
from mcp_types import CallToolResult, TextContent, Tool

from tests.answers.server import RESULTS, tool
from tests.builders import tool_result
from tests.faults.scale import scaled
from tests.wire import Wire
from tests.wrapped import ROOT, wrapped

ROWS = json.dumps({"rows": [{"id": n, "name": f"row {n}"} for n in range(2000)]})
LONG = tool_result(ROWS)


@dataclass
class Block:
    """A class of a program's own, which has a member that a result has."""

    content: str


def test_each_result_and_view_is_that_of_the_wrapper() -> None:
    abridge = Abridge(client="answers", server="answers")
    server = [sys.executable, str(ROOT / "tests" / "answers" / "server.py")]
    with Wire(wrapped(server, "--ledger", "off")) as wire:
        client = {"clientInfo": {"name": "answers", "version": "1"}, "capabilities": {}}
        wire.send("initialize", 0, protocolVersion="2025-11-25", **client)
        wire.send("notifications/initialized")

        def ask(method: str, **params: Any) -> Any:
            return json.loads(wire.send(method, 1, **params)[-1])["result"]

        assert abridge.tools([tool(name) for name in RESULTS]) == ask("tools/list")["tools"]
        for name, answer in [*RESULTS.items()][:: scaled(3, 1)]:
            short = ask("tools/call", name=name, arguments={})
            assert abridge.result(name, {}, answer()) == short
            for view in ("outline()", "grep('error')", "items[0:3].[id]", "nothing("):
                part = ask("tools/call", name=name, arguments={"view": view})
                assert abridge.view(name, {}, view) == part


def test_a_result_comes_out_as_what_it_went_in() -> None:
    abridge = Abridge()
    model = CallToolResult(content=[TextContent(type="text", text=ROWS)], _meta={"a": 1})
    short = abridge.result("list", {}, model)
    assert isinstance(short, CallToolResult)
    assert short.meta == {"a": 1}
    assert isinstance(short.content[0], TextContent)
    text = abridge.result("list", {}, ROWS)
    assert short.content[0].text == text == abridge.result("list", {}, LONG)["content"][0]["text"]
    assert len(text) < 5000 < len(ROWS)
    brief = CallToolResult(content=[])
    assert abridge.result("list", {}, brief) is brief
    wrong: Any
    for wrong in ([ROWS], {"rows": []}, None, Block(ROWS)):
        with pytest.raises(TypeError, match=r"is expected|has `content`"):
            abridge.result("list", {}, wrong)
    with pytest.raises(TypeError, match="is expected here, not str"):
        abridge.tools(["list"])


def test_numbers_keep_their_spelling_and_halves_of_a_pair_do_no_harm() -> None:
    spelled = f'{{"big": 12345678901234567890123, "exact": 1.0, "rows": {ROWS}}}'
    text = Abridge().result("list", {}, spelled)
    assert '"big":12345678901234567890123,"exact":1.0' in text
    structured = {"big": 10**30, "rows": json.loads(ROWS)["rows"]}
    short = Abridge().result("list", {}, tool_result(structuredContent=structured))
    assert short["structuredContent"]["big"] == 10**30
    half = tool_result("\ud800" + "line\n" * 9000)
    assert len(json.dumps(Abridge().result("list", {}, half))) < 5000


def test_no_caller_sees_what_is_kept_of_anothers_answers() -> None:
    abridge = Abridge()

    def secret(caller: str) -> str:
        return ROWS.replace('"row ', f'"secret of {caller} ')

    callers = ("ann", "bob", "")
    for caller in callers:
        abridge.result("list", {}, secret(caller), caller=caller)
    for caller in callers:
        part = str(abridge.view("list", {}, "rows[7].name", caller=caller))
        assert f"secret of {caller} 7" in part
        assert part.count("secret") == 1
    stranger = abridge.view("list", {}, "rows[7].name", caller="eve")
    assert stranger["isError"]
    assert "secret" not in str(stranger)
    assert "secret" not in str(abridge.view("list", {}, "kept", caller="eve"))


def test_many_threads_get_each_its_own_answer() -> None:
    abridge = Abridge()

    def call(number: int) -> bool:
        own = ROWS.replace('"row ', f'"name {number} ')
        abridge.result("list", {"n": number % 5}, own, caller=str(number))
        part = abridge.view("list", {"n": number % 5}, "rows[3].name", caller=str(number))
        return f"name {number} 3" in str(part)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(40)))


def test_a_call_runs_the_tool_once_with_the_arguments_that_are_its_own(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "version: 1\ndefaults: {max_bytes: 5000}\nrules:\n"
        "- {tools: list, arguments: {most: {default: 5, maximum: 9}}}\n"
        "- {tools: secret, hide: true}\n"
    )
    abridge = Abridge(rules)
    call = abridge.call("list", {"view": "rows[0].id", "most": 6})
    assert (call.answer, call.text, call.arguments) == (None, None, {"most": 6})
    assert call.end(ROWS) == call.text == '{"view":0}'
    assert abridge.call("list", {"view": "rows[1].id", "most": 6}).text == '{"view":1}'
    assert abridge.call("list", {"view": None}).arguments == {"most": 5}
    for refusal, reason in (
        (abridge.call("list", {"most": 10}), "maximum of 9"),
        (abridge.call("secret", {}), "secret"),
    ):
        assert refusal.answer is not None
        assert refusal.answer["isError"]
        assert reason in (refusal.text or "")
        assert reason in refusal.end(ROWS)


def test_tools_are_shown_with_a_view_and_what_they_declare_counts() -> None:
    abridge = Abridge()
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [
        Tool(name="read", input_schema=schema),
        Tool(
            name="own", input_schema={"type": "object", "properties": {"view": {"type": "string"}}}
        ),
    ]
    listed = abridge.tools(tools)
    assert list(listed[0].input_schema["properties"]) == ["path", "view"]
    assert abridge.tools([tools[0].model_dump(by_alias=True, exclude_none=True)])[0] == (
        listed[0].model_dump(by_alias=True, exclude_none=True)
    )
    assert abridge.call("own", {"view": "mine"}).arguments == {"view": "mine"}


def test_a_guard_that_asks_a_server_is_told_that_there_is_none() -> None:
    abridge = Abridge(ROOT / "tests" / "cases" / "python" / "rules.yaml", allow_python=True)
    assert abridge.call("remove", {"path": "x"}).arguments == {"path": "x", "careful": True}


def test_options_and_rules_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    wrong: Any = {"budgets": 5}
    with pytest.raises(TypeError, match="no option 'budgets'; did you mean 'budget'"):
        Abridge(**wrong)
    for wrong in ("20kB", 299, True, None):
        with pytest.raises(ValueError, match="neither 300 bytes or more nor auto, client, off"):
            Abridge(budget=wrong)
    file = tmp_path / "rules.yaml"
    file.write_text("version: 1\nrules: [{tool: a}]\n")
    with pytest.raises(RuleErrors, match="did you mean 'tools'"):
        Abridge(file)
    assert Abridge("none").result("list", {}, ROWS) == ROWS
    assert Abridge(budget="off").result("list", {}, ROWS) == ROWS
    assert Abridge(scripts="on").result("list", {}, ROWS) == ROWS


def test_processes_share_what_is_kept_in_a_folder_and_callers_do_not(tmp_path: Path) -> None:
    one, other = (Abridge(store=tmp_path / "answers") for _ in range(2))
    one.result("list", {}, ROWS, caller="ann")
    assert "row 7" in str(other.view("list", {}, "rows[7].name", caller="ann"))
    assert other.view("list", {}, "rows[7].name", caller="bob")["isError"]
    # Another process may have made the call.
    assert "nothing is kept" in (one.call("list", {"view": "rows[7]"}).text or "")


def test_a_ledger_is_written_only_if_it_is_named(tmp_path: Path) -> None:
    script = "from mcp_abridge import Abridge; import sys; text = 'line\\n' * 9000;"
    script += "abridge = Abridge(**dict(each.split('=') for each in sys.argv[1:]));"
    script += "abridge.result('read', {}, text); abridge.view('read', {}, 'all')"
    home = {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": str(ROOT / "proxy")}
    book = tmp_path / "book.db"
    for options in ([], [f"ledger={book}"]):
        subprocess.run([sys.executable, "-c", script, *options], check=True, env=home)
    assert not (tmp_path / "state").exists()
    [row] = ledger_totals.rows(str(book))
    assert (row.name, row.shaped, row.looks, row.asked_all) == ("read", 2, 1, 1)


def test_importing_the_package_loads_no_module_of_it() -> None:
    code = "import sys; own = set(sys.modules); import mcp_abridge; print(*set(sys.modules) - own)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["mcp_abridge"]
    code = "import mcp_abridge; mcp_abridge.Abridges"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "has no attribute 'Abridges'" in out.stderr
