"""Calls that wait for a snapshot, or to be shaped: known by tokens that are never given again."""

from proxy.session.inflight import PendingRequest, SuspendedCalls


def pending(id: bytes) -> PendingRequest:
    return PendingRequest(b"", id, "tools/call", "get")


def test_a_call_is_found_by_its_token_once() -> None:
    waiting, one, other = SuspendedCalls(), pending(b"1"), pending(b"2")
    tokens = [waiting.hold(one), waiting.hold(other)]
    assert [waiting.pop(token) for token in tokens] == [one, other]
    assert not waiting


def test_a_token_is_not_given_again_once_its_call_has_gone_on() -> None:
    waiting = SuspendedCalls()
    first = waiting.hold(pending(b"1"))
    del waiting[first]
    assert waiting.hold(pending(b"2")) != first


def test_what_came_after_a_mark_is_forgotten_and_nothing_else() -> None:
    waiting, before = SuspendedCalls(), pending(b"1")
    kept = waiting.hold(before)
    mark = waiting.last
    gone_on = waiting.hold(pending(b"2"))
    waiting.hold(pending(b"3"))
    del waiting[gone_on]
    waiting.forget_since(mark)
    assert waiting == {kept: before}
