"""A code indexer as found: background jobs, JSON as text only, errors as plain sentences.

Nothing runs in the background: a job is at the next place of its repository's course each time its
status is asked for, so that polls skip what lies between. Times follow from the order of the jobs,
never from the clock.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid4, uuid5

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

STARTED = datetime(2026, 5, 21, 8, 0, 0)
STATUSES = ("pending", "running", "completed", "failed", "cancelled", "blocked")
ACTIVE = ("pending", "running", "blocked")
NO_EMBEDDINGS = "Ollama embedding service unavailable after 5 retry attempts"
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PROJECT = re.compile("[a-zA-Z0-9_-]+")
READS = ToolAnnotations(read_only_hint=True)
CANCELS = ToolAnnotations(read_only_hint=False, destructive_hint=True)
Json = dict[str, Any]


class Repository(NamedTuple):
    """How many files it has, and the course of its jobs: a status, and how many files are done."""

    files: int
    course: list[tuple[str, int]]


REPOSITORIES = {
    "/repos/service": Repository(1200, [("running", 0), ("running", 540), ("completed", 1200)]),
    "/repos/monorepo": Repository(48000, [("running", 0), ("running", 9600), ("running", 21600)]),
    "/repos/library": Repository(300, [("pending", 0), ("pending", 0), ("completed", 300)]),
    "/repos/embeddings": Repository(8000, [("running", 0), ("failed", 2400)]),
    "/repos/shared-gpu": Repository(500, [("running", 0), ("blocked", 200), ("completed", 500)]),
    # Files that came since the scan are counted too: more than all of them are done.
    "/repos/growing": Repository(1000, [("running", 0), ("running", 1500), ("completed", 1000)]),
    # A worker that was thought dead goes on with a job that another has finished.
    "/repos/revenant": Repository(400, [("running", 0), ("completed", 400), ("running", 350)]),
    # A restart of the server puts what was running at the end of the queue.
    "/repos/requeued": Repository(900, [("running", 0), ("running", 450), ("pending", 0)]),
}
NO_DIRECTORY = "/repos/notes.txt"
NO_PERMISSION = "/repos/private"
NO_GRAMMAR = "/repos/cobol"
# Projects whose database is in trouble, and what every tool then says.
TROUBLE = {
    "offline": "Database connection validation failed: connection refused (127.0.0.1:5432)",
    "exhausted": "Connection pool timeout: no connection became free within 30.0 seconds",
    "slow": "Failed to {deed}: connection timeout",
    "starved": "Connection pool timeout during indexing\n"
    "pool statistics: total 20, active 20, waiting 5",
}


class Failure(Exception):
    """What a tool says in place of an answer."""


class Job:
    """One run over a repository."""

    def __init__(self, number: int, path: str, name: str, project: str, force: bool) -> None:
        self.id = str(uuid4())
        self.path, self.name, self.project, self.force = path, name, project, force
        self.created = STARTED + timedelta(minutes=number)
        self.files, course = REPOSITORIES[path]
        self.course = list(course)

    @property
    def status(self) -> str:
        return self.course[0][0]

    @property
    def done(self) -> int:
        return self.course[0][1]

    def poll(self) -> None:
        """Go on to the next place of the course; it stays at the last one."""
        if len(self.course) > 1:
            del self.course[0]

    def cancel(self) -> str:
        """Stop: at once where the job waits, else when the batch at hand is done."""
        waits = self.status == "pending"
        self.course = [*self.course[: not waits], ("cancelled", self.done)]
        return "cancelled" if waits else "cancelling"

    def moment(self, *statuses: str, seconds: float = 2) -> str | None:
        """Return when the job came to one of these statuses, None where it is in another."""
        return utc(self.created + timedelta(seconds=seconds)) if self.status in statuses else None

    def summary(self) -> Json:
        """Return the job as lists have it."""
        started = [status for status in STATUSES if status != "pending"]
        return {
            "job_id": self.id,
            "repo_path": self.path,
            "repo_name": self.name,
            "status": self.status,
            "progress_percentage": 100 * self.done // self.files,
            "files_indexed": self.done,
            "chunks_created": 5 * self.done,
            "created_at": utc(self.created),
            "started_at": self.moment(*started),
            "completed_at": self.moment("completed", seconds=2 + self.files / 80),
            "project_id": self.project,
            "force_reindex": self.force,
        }

    def row(self) -> Json:
        """Return the job as the database has it."""
        failed = self.status == "failed"
        batch = range(max(0, self.done - 500), self.done)
        traceback = f"Traceback (most recent call last):\nEmbeddingServiceError: {NO_EMBEDDINGS}"
        return self.summary() | {
            "progress_message": self.says(),
            "files_scanned": 0 if self.status == "pending" else self.files,
            "cancelled_at": self.moment("cancelled", seconds=60),
            "error_message": NO_EMBEDDINGS if failed else None,
            "error_type": "EmbeddingServiceError" if failed else None,
            "error_traceback": traceback if failed else None,
            "estimated_time_remaining_seconds": (
                max(0, self.files - self.done) / 80 if self.status == "running" else None
            ),
            "database_name": database(self.project),
            "repository_id": str(uuid5(NAMESPACE_URL, self.path)),
            "metadata": {
                "checkpoint": {
                    "checkpoint_type": "file_list_snapshot",
                    "files_processed": [f"{self.path}/src/module_{n:05}.py" for n in batch],
                    "files_remaining": self.files - self.done,
                    "embedding_batch_offset": 5 * self.done,
                },
                "performance": {"files_per_second": 80.0, "chunks_per_second": 400.0},
            },
        }

    def says(self) -> str:
        return {
            "pending": "Waiting for a free slot",
            "running": f"Chunking files: {self.done}/{self.files}",
            "completed": "Indexing complete",
            "failed": "Embedding generation failed",
            "cancelled": "Cancelled by user (partial data retained)",
            "blocked": "Waiting for the embedding service",
        }[self.status]


class Indexer:
    """The jobs of every project."""

    def __init__(self, history: int) -> None:
        self.jobs: list[Job] = []
        for n in range(history):
            self.add("/repos/service", f"service-{n:03}", "default", False).course[:2] = []

    def add(self, path: str, name: str, project: str, force: bool) -> Job:
        job = Job(len(self.jobs), path, name, project, force)
        self.jobs.append(job)
        return job

    def of(self, project: str) -> Iterator[Job]:
        """Yield the jobs of a project, the newest first."""
        return (job for job in reversed(self.jobs) if job.project == project)

    def find(self, job_id: str, project: str) -> Job:
        if not UUID.fullmatch(job_id):
            raise Failure(f"Invalid job_id format: {job_id}")
        for job in self.jobs:
            if job.id == job_id and job.project != project:
                raise Failure(f"Job {job_id} not found in project {project}")
            if job.id == job_id:
                return job
        raise Failure(f"Job not found: {job_id}")

    def start(self, path: str, name: str, project: str, force: bool) -> Json:
        if not path:
            raise Failure("Repository path cannot be empty")
        if not path.startswith("/"):
            raise Failure(f"Repository path must be absolute: {path}")
        if path == NO_DIRECTORY:
            raise Failure(f"Repository path must be a directory: {path}")
        if path == NO_PERMISSION:
            raise Failure(f"Cannot read repository directory: {path}")
        if path == NO_GRAMMAR:
            raise Failure("No grammar for 'cobol' is installed")
        if path not in REPOSITORIES:
            raise Failure(f"Repository path does not exist: {path}")
        for job in self.of(project):
            if job.path == path and job.status in ACTIVE:
                raise Failure(f"Repository already being indexed (job_id: {job.id})")
        job = self.add(path, name or path.rpartition("/")[2], project, force)
        return {
            "job_id": job.id,
            "status": job.status,
            "message": "Job queued" if job.status == "pending" else "Job started successfully",
            "estimated_duration_seconds": job.files / 80,
            "project_id": project,
            "database_name": database(project),
        }

    def page(self, status: str, path: str, project: str, limit: int, offset: int) -> Json:
        if status and status not in STATUSES:
            raise Failure(f"Invalid status value: {status}")
        if not 1 <= limit <= 100:
            raise Failure(f"Limit must be between 1 and 100: {limit}")
        if offset < 0:
            raise Failure(f"Offset must be non-negative: {offset}")
        found = [job for job in self.of(project) if path in job.path and status in ("", job.status)]
        return {
            "jobs": [job.summary() for job in found[offset : offset + limit]],
            "total_count": len(found),
            "limit": limit,
            "offset": offset,
            "project_id": project,
        }

    def cancel(self, job_id: str, confirmed: bool, project: str) -> Json:
        if not confirmed:
            raise Failure("Confirmation required to cancel job. Set confirmed=true.")
        job = self.find(job_id, project)
        if job.status not in ("pending", "running"):
            allowed = "Only pending/running jobs can be cancelled."
            raise Failure(f"Cannot cancel job in status '{job.status}'. {allowed}")
        status, kept = job.cancel(), f"({job.done} files, {5 * job.done} chunks)"
        return {
            "job_id": job.id,
            "status": status,
            "message": (
                f"Job cancelled successfully. Partial data retained {kept}."
                if status == "cancelled"
                else "Cancellation requested. Job will stop after finishing current batch."
            ),
            "files_indexed": job.done,
            "chunks_created": 5 * job.done,
            "cancelled_at": utc(job.created + timedelta(seconds=60)),
            "project_id": project,
        }


def utc(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds") + "Z"


def database(project: str) -> str:
    # Capitals are left as they are, against what the names should look like.
    return f"cb_proj_{project.replace('-', '_')}_{sha1(project.encode()).hexdigest()[:8]}"


def answer(deed: str, project: str, act: Callable[[], Json]) -> CallToolResult:
    """Do something in a project; return its answer as JSON, or what went wrong as a sentence."""
    try:
        if not PROJECT.fullmatch(project):
            raise Failure(f"Invalid project_id format: {project}")
        if project in TROUBLE:
            raise Failure(TROUBLE[project].format(deed=deed))
        text, failed = json.dumps(act(), indent=2), False
    except Failure as failure:
        text, failed = str(failure), True
    return CallToolResult(content=[TextContent(text=text)], is_error=failed)


def serve(indexer: Indexer, log: Path | None) -> MCPServer:
    """Return the server over an indexer; `log` gets a JSON line per call, arguments as received."""

    async def note_call(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if log and ctx.method == "tools/call" and ctx.params:
            call = {"tool": ctx.params.get("name"), "arguments": ctx.params.get("arguments")}
            with log.open("a") as lines:
                lines.write(json.dumps(call) + "\n")
        return await call_next(ctx)

    server = MCPServer("codebase", version="0.8.0", middleware=[note_call], log_level="WARNING")

    # Tools are coroutines so that they run one after the other.
    @server.tool(structured_output=False)
    async def start_indexing_background(
        repo_path: str, name: str = "", project_id: str = "default", force_reindex: bool = False
    ) -> CallToolResult:
        """Start to index a repository in the background; get_job_status tells how far it is."""
        return answer(
            "create background job",
            project_id,
            lambda: indexer.start(repo_path, name, project_id, force_reindex),
        )

    @server.tool(structured_output=False, annotations=READS)
    async def get_job_status(job_id: str, project_id: str = "default") -> CallToolResult:
        """Tell how far an indexing job is."""

        def polled() -> Json:
            job = indexer.find(job_id, project_id)
            job.poll()
            return job.row()

        return answer("query job status", project_id, polled)

    @server.tool(structured_output=False, annotations=READS)
    async def list_background_jobs(
        status: str = "",
        repo_path: str = "",
        project_id: str = "default",
        limit: int = 20,
        offset: int = 0,
    ) -> CallToolResult:
        """List indexing jobs, the newest first: `limit` of them (20, at most 100) from `offset`."""
        return answer(
            "list jobs",
            project_id,
            lambda: indexer.page(status, repo_path, project_id, limit, offset),
        )

    @server.tool(structured_output=False, annotations=CANCELS)
    async def cancel_job(
        job_id: str, confirmed: bool = False, project_id: str = "default"
    ) -> CallToolResult:
        """Cancel an indexing job that is pending or running; `confirmed` must be true."""
        return answer(
            "cancel job", project_id, lambda: indexer.cancel(job_id, confirmed, project_id)
        )

    return server


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add = options.add_argument
    add("--history", type=int, default=45, metavar="N", help="jobs that are done (default 45)")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--http", type=int, metavar="PORT", help="speak Streamable HTTP on 127.0.0.1, not stdio")
    chosen = options.parse_args()
    server = serve(Indexer(chosen.history), chosen.log)
    if chosen.http is None:
        server.run()
    else:
        server.run("streamable-http", port=chosen.http)


if __name__ == "__main__":
    main()
