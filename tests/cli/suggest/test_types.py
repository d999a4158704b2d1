"""`suggest --types`: what is learned fits every recorded answer, and no client refuses another."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.ruleset.selection import Selection, load

from tests import servers
from tests.builders import answer, call, document, result
from tests.cli.conftest import Run
from tests.cli.suggest.recorded import Calls, record, write
from tests.faults.scale import scaled
from tests.fitting import fits
from tests.python_client import connected
from tests.samples import list_tools
from tests.servers import Call, typescript
from tests.talk import Talk
from tests.wrapped import ROOT, wrapped

Served = tuple[list[str], Calls]
STATUS = "roxtra_index_full_sync_status"


def example(name: str, *options: str) -> list[str]:
    return [sys.executable, str(ROOT / f"examples/{name}/server.py"), *options]


def everything(_: Path) -> Served:
    return servers.everything(), [
        ("get-env", {}),
        ("echo", {"message": "a"}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "Chicago"}),
    ]


def fullsync(folder: Path) -> Served:
    return example("fullsync", "--index-dir", str(folder / "index")), [
        (STATUS, {}),
        ("roxtra_index_full_sync", {}),
        (STATUS, {}),
        ("roxtra_search", {"query": "a"}),
        ("roxtra_document_text", {"file_id": "1"}),
    ]


def obsidian(_: Path) -> Served:
    notes: Calls = [("get_active_file", {"format": each}) for each in ("json", "markdown")]
    others: Calls = [("list_vault_files", {}), ("discover", {}), ("search_vault", {"tag": "a"})]
    return example("obsidian", "--files", "300"), [*notes, *others]


def agentdata(_: Path) -> Served:
    calls = [("list_documents", {"prefix": ""}), ("get_document", {"document_id": "none"})]
    return example("agentdata"), [*calls, ("batch_read", {"paths": ["none"]})]


def codebase(_: Path) -> Served:
    calls = [("list_background_jobs", {}), ("get_job_status", {"job_id": "none"})]
    return example("codebase"), [*calls, ("list_background_jobs", {"status": "running"})]


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    "server", [everything, codebase, fullsync, obsidian, agentdata][: scaled(1, 5)]
)
def test_two_official_clients_take_every_answer_of_a_server_with_learned_types(
    server: Callable[[Path], Served], tmp_path: Path, run: Run
) -> None:
    command, calls = server(tmp_path)
    recording, rules = record(tmp_path / "recording", command, calls), tmp_path / "types.yaml"
    run("suggest", "--types", recording, "-o", rules)
    run("test", "--require-tests", rules)
    typed = {each for rule in load([str(rules)])[0].rules for each in rule.tools}
    assert typed
    for options in ([], ["--scripts", "on"])[: scaled(1, 2)]:
        proxied = wrapped(command, "--rules", str(rules), *options)
        with connected(proxied) as python:
            results = [python.call(*each) for each in calls]
        report = typescript("v1", proxied, *(Call(*each) for each in calls))
        assert [each["ok"] for each in report.results] == [True] * len(calls), report.results
        results += [each["result"] for each in report.results]
        assert {each["name"] for each in report.tools if "outputSchema" in each} >= typed
        for (tool, _), each in zip([*calls] * 2, results, strict=True):
            if tool in typed:
                structured, text = each["structuredContent"], each["content"][0]["text"]
                cut = structured.pop("_abridged", None) is not None
                own = {"text": text} if text[:1] != "{" else json.loads(text)
                assert not (cut and options)
                assert cut or structured == own


def learn(run: Run, folder: Path, *words: str) -> RuleSet:
    folder.mkdir(exist_ok=True)
    rules = folder / "types.yaml"
    run("suggest", "--types", "--force", folder, "-o", rules, *words)
    return RuleSet(load([str(rules)]))


def value(random: Random, depth: int = 3) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: random.choice([None, True, 7, 0.5, 2.0, 10**20, "a", ""]),
        lambda: [value(random, depth - 1) for _ in range(random.randrange(4))],
        lambda: members(random, depth - 1),
        lambda: {f"key {n}": value(random, 0) for n in range(random.choice([3, 80]))},
    ]
    return kinds[0 if depth < 1 else random.randrange(4)]()


def members(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(["a", "b", "text", "a.b", "Ünï", "*", "$ref", 'q"', "_abridged"], 3)
    return {name: value(random, depth) for name in names}


@pytest.mark.parametrize("words", [(), ("--strict",)], ids=["open", "strict"])
@pytest.mark.parametrize("seed", range(scaled(1, 6)))
def test_every_answer_fits_what_was_learned_and_any_other_is_sent_so_that_no_client_refuses_it(
    seed: int, words: tuple[str, ...], tmp_path: Path, run: Run
) -> None:
    random = Random(seed)
    recorded = [members(random, 3) for _ in range(4)]
    write(tmp_path, *(("get", {}, each) for each in recorded))
    others = [members(random, 3) for _ in range(8)]
    ruleset = learn(run, tmp_path, *words)
    for scripts, budget in (("on", 300), ("off", "off"), ("off", 300)):
        talk = Talk(Selection(ruleset.files, budget, print, scripts=scripts)(None, None))  # type: ignore[arg-type]
        [tool] = list_tools(talk, {"name": "get", "inputSchema": {"type": "object"}})
        for each in (*recorded, *others, [1], "no rows", 5):
            outcome = result(talk.exchange(call("get"), answer(document(each))))
            if each not in others and isinstance(each, dict) and budget != 300:
                assert outcome["structuredContent"] == each
            if not outcome.get("isError"):
                assert fits(outcome["structuredContent"], tool["outputSchema"]), outcome
            assert words or not outcome.get("isError")


ROWS = {"items": [{"id": 1, "user": {"login": "ann"}}, {"id": 2, "user": None, "note": "x"}]}


def test_members_are_nullable_and_optional_unless_it_is_strict(tmp_path: Path, run: Run) -> None:
    write(tmp_path, ("rows", {}, ROWS), ("rows", {}, ROWS), ("ids", {}, [1]))
    loose, strict = (learn(run, tmp_path, *more).files[0].rules[0] for more in ((), ("--strict",)))
    assert (loose.validate, strict.validate, loose.budgeted) == ("text", "refuse", True)
    assert loose.output_schema is not None
    assert strict.output_schema is not None
    row = loose.output_schema["properties"]["items"]["items"]
    assert row["type"] == ["object", "null"]
    assert row["properties"]["id"] == {"type": ["number", "null"]}
    assert loose.output_schema["properties"]["text"]["type"] == "string"
    row = strict.output_schema["properties"]["items"]["items"]
    assert row["required"] == ["id", "user"]
    assert row["properties"]["id"] == {"type": "integer"}
    text = (tmp_path / "types.yaml").read_text()
    assert "# rows: 2 answers; not in all: items.user.login, items.note" in text
    notes = run("suggest", "--types", tmp_path).err
    assert "no types for ids: no answer is a JSON object" in notes


def test_what_the_server_declares_and_what_would_be_refused_is_not_learned(
    tmp_path: Path, run: Run
) -> None:
    folder = Path(write(tmp_path, ("rows", {}, ROWS), ("rows", {}, "none"), ("own", {}, ROWS)))
    tools = [{"name": "own", "inputSchema": {}, "outputSchema": {"type": "object"}}]
    listed = {"request": {}, "response": {"result": {"tools": tools}}}
    (folder / "0000-tools.json").write_text(json.dumps(listed))
    notes = run("suggest", "--types", "--strict", folder).err
    assert "no types for own: the server declares them" in notes
    assert "no types for rows: some answers are no objects, and --strict would refuse them" in notes
    assert "--strict is for --types" in run("suggest", "--strict", folder, code=2).err
    rows = json.loads(run("suggest", "--types", "--json", folder).out)
    assert [(each["tools"], each["answers"], each["objects"]) for each in rows] == [
        (["rows"], 2, 1)
    ]
