"""Each fault of a command behind `serve` has the promised outcome (Linux).

Those of its bytes, ids and shapes are in test_answers.py, those of its end in test_orphans.py.
"""

from functools import partial

import pytest
from mcp_abridge.document.message import elements

from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.routes import Local, answer_of, failure, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import INITIALIZE, Sidecar, call, keys, post, serving, soon
from tests.faults.wrapper import codes, naughty
from tests.platforms import on_posix

MB = 1 << 20


def has_said(sidecar: Sidecar, message: str) -> bool:
    """Return True if the log has this message, and has it once."""
    return sum(message in line for line in sidecar.messages()) == 1


@pytest.mark.fault(1, "http")
@pytest.mark.parametrize(
    ("fault", "how"),
    [("ends", "3"), pytest.param("ends_before", "SIGKILL", marks=on_posix("no signals"))],
)
def test_a_server_on_stdio_that_dies_has_all_calls_in_flight_answered_with_the_cause(
    fault: str, how: str
) -> None:
    error = f"{codes(how)[1]}; its stderr ends with:\nthe disk is on fire"
    with serving(*naughty(fault, how)) as sidecar:
        local = Local(sidecar)
        with local.sound():
            session = sidecar.begin()
            two = b"[" + call(2, "end") + b"," + call(3) + b"]"
            for ids, raw in (([2, 3], post(two, session)), ([4], modern(4, "end"))):
                with soon():
                    response = sidecar.ask(raw)
                answers = [part for raw in response.messages for part in elements(raw)]
                failures = {failure(*each) for each in zip(answers, ids, strict=True)}
                assert failures == {error}
                logged = f"{error}; requests answered with an error: {len(ids)}"
                until(partial(has_said, sidecar, logged))
            assert sidecar.post(call(4), session).status == 404


@pytest.mark.fault(2, "http")
def test_a_command_that_ends_at_once_is_an_error_with_its_last_words() -> None:
    with serving(*naughty("crashes", "5")) as sidecar:
        for id, raw in ((1, post(INITIALIZE)), (2, modern(2))):
            response = sidecar.ask(raw)
            error = failure(response.messages[-1], id)
            cause = "the server ended with exit code 5"
            assert error == f"{cause}; its stderr ends with:\nno such database"
        until(lambda: len(sidecar.children) == 1)


@pytest.mark.fault(8, "http")
def test_a_large_line_of_a_server_on_stdio_is_an_answer() -> None:
    size = scaled(20, 100) * MB
    with serving(*naughty("large")) as sidecar:
        local = Local(sidecar)
        with local.sound():
            for id, raw in local.eras(str(size)):
                with sidecar.in_memory(3 * size):
                    assert answer_of(sidecar.ask(raw)) == result(b"%d" % id, "x" * size)


@pytest.mark.fault(9, "http")
def test_an_endless_line_of_a_server_on_stdio_is_an_error_and_the_next_one_comes() -> None:
    with serving(*keys(limits={"message": "1MB"}), *naughty("endless", str(64 * MB))) as sidecar:
        local = Local(sidecar)
        with local.sound(), sidecar.in_memory(32 * MB):
            for id, raw in local.eras("end"):
                error = failure(sidecar.ask(raw).messages[-1], id)
                assert "is over the limit of 1000000 bytes" in error
            # The log may come after the answer.
            until(lambda: sum("is over the limit" in each for each in sidecar.messages()) == 2)
