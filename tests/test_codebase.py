"""Holds the indexing server of the examples to its contracts, its error codes and its statuses."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import orjson
import pytest
from mcp_abridge.document.tree import Document
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.selection import load
from mcp_abridge.storage import ledger_totals

from examples.codebase import transitions
from tests import servers
from tests.faults.scale import scaled
from tests.python_client import Mode, System, connected, logged, reaching
from tests.serving import FRONTS, upstream
from tests.wrapped import ROOT, texts, wrapped

EXAMPLE = ROOT / "examples" / "codebase"
SERVER = [sys.executable, str(EXAMPLE / "server.py")]
# How the server is reached, and the era of the protocol that the client speaks.
WAYS: dict[str, Mode] = {"stdio": "auto", "http": "legacy"}
STATUS = [
    "job_id", "status", "progress_percentage", "progress_message", "files_scanned",
    "files_indexed", "chunks_created", "created_at", "started_at", "completed_at", "cancelled_at",
    "error_message", "error_type", "estimated_time_remaining_seconds", "project_id",
    "database_name",
]  # fmt: skip
NULLABLE = {
    "get_job_status": {
        "started_at", "completed_at", "cancelled_at", "error_message", "error_type",
        "estimated_time_remaining_seconds",
    },
    "list_background_jobs": {"started_at", "completed_at"},
    "start_indexing_background": set(),
    "cancel_job": set(),
}  # fmt: skip
REQUIRED = [name for name in STATUS if name not in NULLABLE["get_job_status"]]
CODES = {
    "VALIDATION_ERROR", "JOB_NOT_FOUND", "DUPLICATE_JOB", "INVALID_STATUS", "DATABASE_ERROR",
    "POOL_TIMEOUT", "CONNECTION_ERROR",
}  # fmt: skip
STATUSES = ("pending", "running", "completed", "failed", "cancelled", "blocked")
ENDS = ("completed", "failed", "cancelled")
START, GET, LIST, CANCEL = (
    "start_indexing_background", "get_job_status", "list_background_jobs", "cancel_job",
)  # fmt: skip
SOME = "550e8400-e29b-41d4-a716-446655440000"

Json = dict[str, Any]


class Jobs(System):
    """A client of the indexing server."""

    def document(self, tool: str, **arguments: Any) -> Json:
        """Call a tool; return its document, which both copies of the answer have."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), texts(result)
        [text] = texts(result)
        document: Json = orjson.loads(text)
        assert result["structuredContent"] == document
        return document

    def error(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that fails; return what stands under `error`."""
        result = self.call(tool, **arguments)
        assert result["isError"]
        assert "structuredContent" not in result
        [text] = texts(result)
        return orjson.loads(text)["error"]

    def start(self, repository: str, project: str) -> str:
        document = self.document(
            "start_indexing_background", repo_path=f"/repos/{repository}", project_id=project
        )
        return str(document["job_id"])

    def status(self, job: str, project: str) -> Json:
        return self.document("get_job_status", job_id=job, project_id=project)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server's own HTTP, with nothing between."""
    with upstream(SERVER, tmp_path_factory.mktemp("origin") / "server.log") as origin:
        yield f"{origin}/mcp"


@contextmanager
def started(transport: str, rules: Path, folder: Path, mode: Mode) -> Iterator[Jobs]:
    """Put the proxy in front of the server, with a client in front of it."""
    front = FRONTS[transport](SERVER, [rules], folder, "--allow-python")
    with front as entered, entered.connect(mode) as client:
        yield Jobs(client, folder / "no log")


@pytest.fixture(scope="module", params=list(WAYS)[: scaled(1, 2)])
def jobs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Jobs]:
    """Connect through the rules as they are."""
    folder, rules = tmp_path_factory.mktemp("warning"), EXAMPLE / "rules.yaml"
    with started(request.param, rules, folder, WAYS[request.param]) as jobs:
        yield jobs


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same rules, but for refusing what breaks a contract."""
    folder = tmp_path_factory.mktemp("refusing-rules")
    (folder / "transitions.py").write_bytes((EXAMPLE / "transitions.py").read_bytes())
    rules = (EXAMPLE / "rules.yaml").read_text()
    assert rules.count("validate: warn") == 1
    strict = folder / "rules.yaml"
    strict.write_text(rules.replace("validate: warn", "validate: refuse"))
    return strict


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, refusing: Path) -> Iterator[Jobs]:
    """Connect through those; what the client accepts fits the contract to the letter."""
    folder = tmp_path_factory.mktemp("refusing")
    with started("http to a command", refusing, folder, "2026-07-28") as jobs:
        yield jobs


@pytest.fixture(scope="module")
def contracts() -> dict[str, Json]:
    """Return the contract of each tool, as it is when null is a type."""
    [file] = load([str(EXAMPLE / "rules.yaml")], allow_python=True)
    return {rule.tools[0]: rule.output_schema for rule in file.rules if rule.output_schema}


@pytest.fixture
def project() -> str:
    """Return a project that no test has used."""
    return f"test-{uuid4().hex}"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("sdk", ["v1", "v2"][: scaled(1, 2)])
def test_the_typescript_clients_take_every_answer_that_keeps_to_its_contract(
    sdk: Literal["v1", "v2"], refusing: Path, project: str
) -> None:
    command = wrapped(SERVER, "--rules", str(refusing), "--allow-python")
    pending = {"repo_path": "/repos/library", "project_id": project}
    report = servers.typescript(
        sdk,
        command,
        servers.Call("start_indexing_background", pending),
        servers.Call("list_background_jobs", {"project_id": project}),
        servers.Call("get_job_status", {"job_id": SOME}),
        # A broken contract is an error result, which no client holds to the schema.
        servers.Call("start_indexing_background", pending | {"project_id": "Capitals"}),
    )
    assert all(tool["outputSchema"]["additionalProperties"] is False for tool in report.tools)
    assert [each["ok"] for each in report.results] == [True] * 4, report.results
    started, listed, unknown, broken = (each["result"] for each in report.results)
    assert started["structuredContent"]["status"] == "pending"
    assert listed["structuredContent"]["jobs"][0]["started_at"] is None
    assert unknown["isError"]
    assert "structuredContent" not in unknown
    assert broken["isError"]
    assert "database_name" in broken["content"][0]["text"]


def job_schema(schema: Json) -> Json:
    """Return the properties of a job in a contract: of the answer, or of each in a list."""
    properties: Json = schema["properties"]
    return properties["jobs"]["items"]["properties"] if "jobs" in properties else properties


def test_each_tool_is_advertised_with_its_contract_and_nulls_where_there_are_nulls(
    strict: Jobs, contracts: dict[str, Json]
) -> None:
    tools = strict.client.tools()
    assert set(tools) == set(NULLABLE)
    for name, tool in tools.items():
        schema = tool.output_schema
        assert schema == contracts[name]
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "nullable" not in orjson.dumps(schema).decode()
        fields = job_schema(schema)
        assert all(field["description"] for field in fields.values())
        nullable = {
            name
            for name, field in fields.items()
            if "null" in orjson.dumps(field.get("type", field)).decode()
        }
        assert nullable == NULLABLE[name]
    start, status, listed, cancel = (contracts[name] for name in (START, GET, LIST, CANCEL))
    assert [len(start["properties"]), len(start["required"])] == [6, 5]
    assert start["properties"]["status"]["enum"] == ["pending", "running"]
    assert list(status["properties"]) == STATUS
    assert status["required"] == REQUIRED
    assert status["properties"]["status"]["enum"] == list(STATUSES)
    assert set(listed["properties"]) == {"jobs", "total_count", "limit", "offset", "project_id"}
    item = listed["properties"]["jobs"]["items"]
    assert [len(item["properties"]), len(item["required"])] == [11, 9]
    assert "additionalProperties" not in item
    assert len(cancel["properties"]) == 7
    assert set(cancel["required"]) == set(cancel["properties"])
    assert cancel["properties"]["status"]["enum"] == ["cancelled", "cancelling"]


def test_the_advertised_schema_allows_a_broken_contract_that_passes(
    jobs: Jobs, contracts: dict[str, Json]
) -> None:
    for name, tool in jobs.client.tools().items():
        schema = tool.output_schema
        assert schema is not None
        assert set(schema) == {"type", "anyOf"}
        contract, other = schema["anyOf"]
        assert contract == contracts[name]
        assert set(other) == {"description"}


def test_input_schemas_and_descriptions_are_the_servers_own(jobs: Jobs, origin: str) -> None:
    with reaching(origin) as direct:
        own = direct.tools()
    for name, tool in jobs.client.tools().items():
        assert tool.input_schema == own[name].input_schema
        assert tool.description == own[name].description


def test_a_job_that_waits_passes_a_client_that_validates(strict: Jobs, project: str) -> None:
    document = strict.status(strict.start("library", project), project)
    assert set(document) == set(STATUS)
    assert document["status"] == "pending"
    assert {name for name, value in document.items() if value is None} == NULLABLE["get_job_status"]
    [item] = strict.document("list_background_jobs", project_id=project)["jobs"]
    assert {name for name, value in item.items() if value is None} == {"started_at", "completed_at"}


COURSES = {
    "service": ["running", "completed"],
    "library": ["pending", "completed"],
    "embeddings": ["failed"],
    "shared-gpu": ["blocked", "completed"],
}


@pytest.mark.parametrize("repository", COURSES)
def test_a_status_has_sixteen_fields_in_every_state_of_the_job(
    repository: str, jobs: Jobs, project: str
) -> None:
    job = jobs.start(repository, project)
    for status in COURSES[repository]:
        document = jobs.status(job, project)
        assert set(document) == set(STATUS)
        assert all(document[name] is not None for name in REQUIRED)
        assert document["status"] == status
        assert 0 <= document["progress_percentage"] <= 100
        assert (document["error_type"] is None) == (status != "failed")
        assert len(orjson.dumps(document)) < 600


def test_pages_of_jobs_are_the_servers_own(strict: Jobs, origin: str) -> None:
    with reaching(origin) as direct:
        for offset, count in ((0, 20), (40, 5), (60, 0)):
            arguments = {"limit": 20, "offset": offset}
            page = strict.document("list_background_jobs", **arguments)
            [text] = texts(direct.call("list_background_jobs", arguments))
            assert list(page) == ["jobs", "total_count", "limit", "offset", "project_id"]
            assert [page["limit"], page["offset"], page["total_count"]] == [20, offset, 45]
            jobs, own = page["jobs"], orjson.loads(text)["jobs"]
            assert len(jobs) == len(own) == count


def test_every_code_is_in_the_rules_and_no_other() -> None:
    rules = (EXAMPLE / "rules.yaml").read_text()
    assert set(re.findall(r"code: ([A-Z_]+)", rules)) == CODES


def test_a_broken_contract_passes_and_is_counted_and_logged_once(
    tmp_path: Path, project: str
) -> None:
    book, log = tmp_path / "ledger.db", tmp_path / "log.txt"
    options = ["--rules", str(EXAMPLE / "rules.yaml"), "--allow-python", "--ledger", str(book)]
    with connected(logged(wrapped(SERVER, *options), log)) as client:
        jobs = Jobs(client, log)
        for name in (f"{project}-a", f"{project}-b"):
            assert jobs.status(jobs.start("growing", name), name)["progress_percentage"] == 150
            revenant = jobs.start("revenant", name)
            statuses = [jobs.status(revenant, name)["status"] for _ in range(3)]
            assert statuses == ["completed", "running", "running"]
            requeued = jobs.start("requeued", name)
            statuses = [jobs.status(requeued, name)["status"] for _ in range(2)]
            assert statuses == ["running", "pending"]
        jobs.start("shared-gpu", f"Capital-{project}")
        jobs.call("start_indexing_background", repo_path="/repos/cobol")
    assert {each.kind: each.count for each in ledger_totals.warnings(str(book))} == {
        "contract: progress_percentage maximum": 2,
        "transition: completed -> running": 2,
        "transition: running -> pending": 2,
        "contract: database_name pattern": 1,
        "recast: no case fits": 1,
    }
    lines = log.read_text()
    for words in ("progress_percentage", "went completed -> running", "went running -> pending"):
        assert lines.count(words) == 1


def test_a_broken_contract_is_refused_if_the_rules_say_so(strict: Jobs, project: str) -> None:
    job = strict.start("growing", project)
    breaks = "the response breaks its contract: "
    assert strict.error("get_job_status", job_id=job, project_id=project) == {
        "code": "VALIDATION_ERROR",
        "message": f"{breaks}progress_percentage: 150 is greater than the maximum of 100",
        "details": {"field": "progress_percentage"},
    }
    assert strict.status(job, project)["status"] == "completed"
    capital = {"repo_path": "/repos/service", "project_id": f"Capital-{project}"}
    error = strict.error("start_indexing_background", **capital)
    assert error["message"].startswith(f"{breaks}database_name: ")
    assert error["details"] == {"field": "database_name"}


def warned(value: Any) -> list[str]:
    """Return the warnings for a document, which must come out as it went in."""
    raw = orjson.dumps(value)
    document = Document.read(raw)
    call = Call("get_job_status", warnings=[])
    transitions.Transitions()(document.root, call)
    assert document.encode() == raw
    return [each.kind for each in call.warnings]


@pytest.mark.parametrize("before", STATUSES)
def test_a_status_that_nothing_leads_to_is_warned_of_however_many_were_skipped(before: str) -> None:
    assert sum(map(len, transitions.STEPS.values())) == 9
    for after in STATUSES:
        job = f"{before} {after}"
        assert warned({"job_id": job, "status": before}) == []
        # What is wrong: to leave an end, and to wait again.
        wrong = before != after and (before in ENDS or after == "pending")
        expected = [f"transition: {before} -> {after}"] if wrong else []
        assert warned({"job_id": job, "status": after}) == expected
        assert warned({"job_id": job, "status": after}) == []
