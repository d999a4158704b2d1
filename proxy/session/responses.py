"""Responses to calls under a rule: they are shaped, stored, or withheld."""

from collections import OrderedDict

import msgspec
from msgspec import Struct, field

from proxy.document import message
from proxy.document.message import Message, string_at
from proxy.ruleset.clients import client_for
from proxy.ruleset.rule import Rule
from proxy.session.active_rules import ActiveRules
from proxy.session.counts import SessionMeter
from proxy.session.forwarding import refusal
from proxy.session.inflight import PendingRequest, RecentlyAnswered, SuspendedCalls
from proxy.session.outputs import DropSnapshots, Forward, Output, Shape, StoreSnapshot
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.snapshots import Key, Snapshot

_REMEMBERED = 1000  # keys of stored snapshots; the oldest is forgotten first


class Answers(Struct, eq=False):
    """Has responses shaped and handles the results; outputs are relative to the server.

    `tasks` are calls by the names of their tasks, `kept` the keys of stored snapshots.
    """

    standing: ActiveRules
    tally: SessionMeter
    waiting: SuspendedCalls
    tasks: RecentlyAnswered = field(default_factory=RecentlyAnswered)
    kept: OrderedDict[Key, None] = field(default_factory=OrderedDict)

    def answered(self, raw: bytes, pending: PendingRequest, rule: Rule) -> tuple[Output, ...]:
        """Have a response shaped, unless its rule only bounds its size and it surely fits."""
        # The part of a line that a model sees is never longer than the line.
        within = rule.max_bytes is not None and len(raw) <= rule.max_bytes
        short = within and rule.size_budget.passes_small
        asked = pending.view is not None or pending.key in self.kept
        if short and not asked and not rule.failure_policy.withholds:
            self.tally.untouched(pending, len(raw))
            return (Forward(raw),)
        return (Shape(self.job(pending, rule, raw=raw)),)

    def unread(self, pending: PendingRequest, rule: Rule, cause: Exception) -> tuple[Output, ...]:
        """Withhold a response that cannot be parsed, for this cause."""
        self.tally.log(f"{rule.at(pending.tool)}: withheld: {cause}")
        said = f"the response was withheld: rule {rule.name!r} cannot read it"
        return (Forward(refusal(self.tally, pending, said)),)

    def job(
        self,
        pending: PendingRequest,
        rule: Rule,
        *,
        raw: bytes | None = None,
        snapshot: Snapshot | None = None,
    ) -> ShapeJob:
        """Suspend a call, and return the job that shapes its response; see proxy.shaping.job."""
        token = self.waiting.hold(pending)
        return ShapeJob(
            rule=rule,
            tool=pending.tool,
            id=pending.id,
            raw=raw,
            snapshot=snapshot,
            arguments=pending.told,
            names=pending.names,
            view=pending.view,
            viewable=pending.cacheable,
            keep=pending.cacheable and rule.snapshot_step.needed,
            shows=client_for(self.standing.client).shows,
            modern=pending.modern,
            token=token,
            aside=rule.circuit_breaker.open,
        )

    def shaped(
        self, job: ShapeJob, outcome: ShapeResult, pending: PendingRequest | None
    ) -> tuple[Output, ...]:
        """Process the result of a job; `pending` is the suspended call, None if it was given up."""
        if pending is None or not pending.again:
            self.tally.shaped(job, outcome)
        kept: tuple[Output, ...] = ()
        key = None if pending is None else pending.key
        if key is not None and outcome.snapshot is not None:
            self.kept[key] = None
            if len(self.kept) > _REMEMBERED:
                self.kept.popitem(last=False)
            kept = (StoreSnapshot(key, outcome.snapshot),)
        elif (
            key is not None and key in self.kept and job.raw is not None and outcome.word != "error"
        ):
            # The server answered the same call again: a view of the old response would mislead.
            del self.kept[key]
            kept = (DropSnapshots(key),)
        return (*kept, Forward(outcome.raw))

    # Tasks: tasks/result returns the result of a task's call (MCP 2025-11-25)

    def tasked(self, read: Message, pending: PendingRequest) -> bool:
        """Record the call of a task; return True if the response names a task.

        A server may answer at once instead. Raises DocumentError if the result is no object.
        """
        task = message.members(read.result).get("task")
        name = None if task is None else string_at(task, "taskId")
        if name is not None:
            self.tasks.put(_name(name), pending)
        return task is not None

    def result_of(self, task: str, asked: PendingRequest) -> PendingRequest:
        """Return the call of a task under the id of `asked`; `asked` if the task is unknown."""
        call = self.tasks.get(_name(task))
        if call is None:
            return asked
        return msgspec.structs.replace(
            call, exchange=asked.exchange, id=asked.id, method=asked.method, as_task=False
        )


def _name(task: str) -> bytes:
    # A JSON string may hold a lone surrogate.
    return task.encode("utf-8", "surrogatepass")
