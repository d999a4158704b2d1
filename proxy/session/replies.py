"""What the proxy itself answers a call, in place of the server; counted as that."""

from proxy import error_result, message
from proxy.inflight import Pending
from proxy.outputs import Output, Reply
from proxy.session.tally import Tally, Word
from proxy.transforms.base import Call


def reply(tally: Tally, pending: Pending, word: Word, line: bytes) -> tuple[Output, ...]:
    """Answer a call with `line`; `word` says what that is. Relative to the client."""
    tally.replied(pending, word, line)
    return (Reply(line),)


def refuse(tally: Tally, pending: Pending, said: str) -> tuple[Output, ...]:
    """Answer a call with an error result that says `said`. Relative to the client."""
    return reply(tally, pending, "refused", refusal(tally, pending, said))


def refusal(tally: Tally, pending: Pending, said: str) -> bytes:
    """Return the error result that says `said`, in the form that the rule gives its errors."""
    rule = pending.rule
    if rule is None or rule.mode != "active" or not rule.errors:
        return message.refusal(pending.id, said, pending.modern)
    call = Call(pending.tool, pending.told, names=pending.names, warnings=[])
    line = error_result.refusal(rule, call, pending.id, said, pending.modern)
    tally.warned(pending.tool, rule, call.warnings)
    return line
