"""What becomes of the answers to calls that a rule covers: they are shaped, kept, or withheld."""

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

_REMEMBERED = 1000  # snapshots that were kept; the oldest is forgotten first


class Answers(Struct, eq=False):
    """Has answers shaped, and takes what comes of it; outputs are relative to the server.

    `tasks` are calls by the names of the tasks that work for them, `kept` what snapshots there are.
    """

    standing: ActiveRules
    tally: SessionMeter
    waiting: SuspendedCalls
    tasks: RecentlyAnswered = field(default_factory=RecentlyAnswered)
    kept: OrderedDict[Key, None] = field(default_factory=OrderedDict)

    def answered(self, raw: bytes, pending: PendingRequest, rule: Rule) -> tuple[Output, ...]:
        """Have an answer shaped, unless it is sure to be short enough and that is all there is."""
        # What a model sees of a line is never longer than the line.
        short = rule.max_bytes is not None and len(raw) <= rule.max_bytes and rule.only_bounds
        asked = pending.view is not None or pending.key in self.kept
        if short and not asked and not rule.withholds:
            self.tally.untouched(pending, len(raw))
            return (Forward(raw),)
        return (Shape(self.job(pending, rule, raw=raw)),)

    def unread(self, pending: PendingRequest, rule: Rule, cause: Exception) -> tuple[Output, ...]:
        """Withhold an answer that cannot be read, for this cause."""
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
        """Return what is to be shaped for a call, which waits for that; see proxy.shaping.job."""
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
            keep=pending.cacheable and bool(rule.windows or rule.viewable),
            shows=client_for(self.standing.client).shows,
            modern=pending.modern,
            token=token,
            aside=rule.circuit.open,
        )

    def shaped(
        self, job: ShapeJob, outcome: ShapeResult, pending: PendingRequest | None
    ) -> tuple[Output, ...]:
        """Take what came of a job; `pending` is the call that has waited, if it still does."""
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
            # The server has answered the same call anew: a view of the old one would mislead.
            del self.kept[key]
            kept = (DropSnapshots(key),)
        return (*kept, Forward(outcome.raw))

    # Tasks: tasks/result brings the result of the call they work for (MCP 2025-11-25)

    def tasked(self, read: Message, pending: PendingRequest) -> bool:
        """Remember which call a task works for.

        Says whether the response names a task: a server may answer at once instead. Raises
        DocumentError for a result that is no object.
        """
        task = message.members(read.result).get("task")
        name = None if task is None else string_at(task, "taskId")
        if name is not None:
            self.tasks.put(_name(name), pending)
        return task is not None

    def result_of(self, task: str, asked: PendingRequest) -> PendingRequest:
        """Return what is to be known when the request `asked` brings the result of a task."""
        call = self.tasks.get(_name(task))
        if call is None:
            return asked
        return msgspec.structs.replace(
            call, exchange=asked.exchange, id=asked.id, method=asked.method, as_task=False
        )


def _name(task: str) -> bytes:
    # A text that came in JSON may hold half of a pair of surrogates.
    return task.encode("utf-8", "surrogatepass")
