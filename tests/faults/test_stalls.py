"""No session waits for another one's rule: pings go on while a rule works, or comes to its end.

What is promised is that each is answered within 50 ms, which `make faults` holds it to. A machine
that runs other things holds up everybody: so the same pings go to a sidecar that has nothing to do,
at the same time, and what the worst of those takes is no fault of ours. Each scene has a few tries:
what holds up the loop does so every time. Beside all other tests only a second is asked for, of
what takes longer than that. The figures are shown with `-s`.
"""

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from tests.faults import weighty
from tests.faults.processes import SECONDS, until
from tests.faults.routes import META, failure, stateless
from tests.faults.scale import further, scaled, some
from tests.faults.sidecar import INITIALIZE, Sidecar, call, compact, post, serving
from tests.faults.wrapper import OWN, Wrapped
from tests.raw_http import RawRequest, RawServer, session, whole

PROMISED = scaled(1000, 50) / 1000  # seconds
BETWEEN = scaled(50, 4) / 1000  # seconds between two pings
TRIES = 5
WEIGHTY = Path(weighty.__file__)
COMMAND = ("--", sys.executable, str(WEIGHTY))
JSON_ONLY = "Accept: application/json"
# Makes 2^26 of one, sharing all of it, and then writes them out one by one.
EXPLOSIVE = " | ".join([*["[@, @]"] * 26, *["[]"] * 25, "length(@)"])
# What RE2 needs for it grows with the bound, at every character anew.
SLOW = "(l.{0,300}z|o.{0,400}y){2}"
OVER_FUEL = "failed at jmespath: it takes more than 10000000 units of work"
# One after the other has its turn: a rule that fails five times in a row is out of service.
NUMBERS = itertools.cycle(range(50))


def weightily(request: RawRequest) -> Iterator[bytes]:
    """Answer as the server on stdio does."""
    tool = request.message.get("params", {}).get("name", "")
    yield whole(weighty.answer(request.id, tool))


class Pings:
    """Pings through a session of its own, one after the other, while it is entered."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.session = sidecar.begin()
        self.took: list[float] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._ping)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join(SECONDS)

    def _ping(self) -> None:
        with self.sidecar.client() as client:
            for number in itertools.count(1):
                start = time.perf_counter()
                # The server gives all sessions one id: a ping must not have the id of a call.
                ping = compact({"jsonrpc": "2.0", "id": f"ping {number}", "method": "ping"})
                client.send(post(ping, JSON_ONLY, self.session))
                assert client.answer().status == 200
                self.took.append(time.perf_counter() - start)
                if self.over.wait(BETWEEN):
                    return

    @property
    def worst(self) -> float:
        return max(self.took)


class Served(NamedTuple):
    """A sidecar, one that has nothing to do, and the headers of who is served."""

    sidecar: Sidecar
    idle: Sidecar
    headers: tuple[str, ...]
    modern: bool = False

    def ask(self, tool: str, **arguments: Any) -> bytes:
        """Make a call and return its answer."""
        more = {"_meta": META} if self.modern else {}
        body = call(7, tool, arguments=arguments, **more)
        return self.post(body, *(stateless(tool) if self.modern else self.headers))

    def post(self, body: bytes, *headers: str) -> bytes:
        response = self.sidecar.post(body, JSON_ONLY, *headers)
        assert response.status == 200, response
        return response.body

    def calmly(self, name: str, work: Callable[[], None]) -> None:
        """Do `work` while others ping; their answers must not be late."""
        reports = []
        for _ in range(TRIES):
            with Pings(self.idle) as machine, Pings(self.sidecar) as pings:
                work()
            figures = f"{pings.worst * 1000:.1f} ms of {len(pings.took)}"
            reports.append(f"worst ping {figures}; idle {machine.worst * 1000:.1f} ms")
            if pings.worst <= PROMISED + machine.worst:
                print(f"\n{name}: {reports[-1]}")
                return
        pytest.fail(f"{name}: pings were late: {reports}")


def text_of(raw: bytes) -> Any:
    [block] = json.loads(raw)["result"]["content"]
    return block["text"]


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rule file, which holds what nobody wants to read."""
    folder = tmp_path_factory.mktemp("rules")
    text = Path(__file__).with_name("stalls.yaml").read_text()
    step = f'{{jmespath: "{EXPLOSIVE}"}}'
    more = [f'- {{tools: "explode {number} *", response: [{step}]}}' for number in range(50)]
    (folder / "rules.yaml").write_text("\n".join([text, *more]))
    (folder / "spin.py").write_text(Path(__file__).with_name("spin.py").read_text())
    return folder / "rules.yaml"


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    for size in (weighty.SMALL, weighty.LARGE):
        weighty.result(size)
    with RawServer(session(weightily)) as raw_server:
        yield raw_server


@pytest.fixture(scope="module")
def idle(server: RawServer) -> Iterator[Sidecar]:
    with serving(server.url) as sidecar:
        yield sidecar


@pytest.fixture(scope="module")
def before_url(server: RawServer, idle: Sidecar, rules: Path) -> Iterator[Served]:
    with serving("--allow-python", "--rules", str(rules), server.url) as sidecar:
        yield Served(sidecar, idle, (sidecar.begin(),))


@pytest.fixture(scope="module")
def before_command(idle: Sidecar, rules: Path) -> Iterator[Served]:
    with serving("--allow-python", "--rules", str(rules), *COMMAND) as sidecar:
        yield Served(sidecar, idle, (sidecar.begin(),))


Work = Callable[[Served], None]


def keeping(served: Served) -> None:
    assert text_of(served.ask("keep large")).startswith('{"items":[{"id":0},{"id":1},')


def exploding(size: str) -> Work:
    def work(served: Served) -> None:
        tool = f"explode {next(NUMBERS)} {size}"
        assert served.ask(tool) == weighty.answer(b"7", tool)  # the original, as it came
        until(lambda: any(f"{tool}: {OVER_FUEL}" in line for line in served.sidecar.messages()))

    return work


def viewed(tool: str) -> Work:
    def work(served: Served) -> None:
        served.ask(tool)
        error = served.ask(tool, view=EXPLOSIVE)
        assert failure(error, 7).endswith("takes too much work; narrow it")

    return work


def searched(served: Served) -> None:
    answer = text_of(served.ask("search large", pattern=SLOW))
    assert answer.startswith("{"), answer
    assert json.loads(answer)["items"] == []


def spinning(served: Served) -> None:
    assert served.ask("spin small") == weighty.answer(b"7", "spin small")


LITTLE = "a large document, of which little is kept"
EXPLODES = "an expression that explodes over a large document"
SPINS = "Python of a rule's own that spins"
SMALL = "an expression that explodes over a small document"
SCENES: dict[str, Work] = {
    LITTLE: keeping,
    SMALL: exploding("small"),
    EXPLODES: exploding("large"),
    "a view that explodes over a small document": viewed("look small"),
    "a regular expression of a client's that takes long": searched,
    SPINS: spinning,
}


@pytest.mark.fault(36, "http")
@pytest.mark.parametrize("scene", some(SCENES.keys(), SMALL, SPINS))
def test_other_requests_are_answered_while_a_rule_works_on_an_answer_by_http(
    before_url: Served, scene: str
) -> None:
    for _ in range(scaled(1, 5)):
        before_url.calmly(scene, lambda: SCENES[scene](before_url))


@pytest.mark.fault(36, "http")
@pytest.mark.parametrize(
    ("scene", "modern"), [(SPINS, False), further(EXPLODES, False), (SMALL, True)]
)
def test_other_requests_are_answered_while_a_rule_works_on_an_answer_of_a_command(
    before_command: Served, scene: str, modern: bool
) -> None:
    served = before_command._replace(modern=modern)
    for _ in range(scaled(1, 5)):
        served.calmly(scene, lambda: SCENES[scene](served))


@pytest.mark.fault(36, "stdio")
@pytest.mark.parametrize("place", ["command", "url"])
def test_messages_of_the_client_go_on_while_a_rule_works(
    rules: Path, server: RawServer, place: str
) -> None:
    server.requests.clear()

    def received(*methods: str) -> bool:
        """Return True if the server has read all of these methods."""
        if place == "url":
            return set(methods) <= {request.message.get("method") for request in server.requests}
        lines = wire.errors.decode().splitlines()
        return all(f"heard {method}" in lines for method in methods)

    before = COMMAND if place == "command" else (server.url,)
    with Wrapped([*OWN, "--allow-python", "--rules", str(rules), *before]) as wire:
        wire.ask(INITIALIZE)
        wire.write(call(5, "spin large") + b"\n")
        until(lambda: received("tools/call"))
        note = compact({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        ping = compact({"jsonrpc": "2.0", "id": 6, "method": "ping"})
        wire.write(ping + b"\n" + note + b"\n", reading=False)
        until(lambda: received("ping", "notifications/roots/list_changed"))
        original, pong = weighty.answer(b"5", "spin large"), weighty.answer(b"6", "")
        expected = [original, pong] if place == "command" else [pong, original]
        early = wire.buffer.find(b"\n") < 0
        assert [wire.line()[:-1] for _ in expected] == expected
        assert early, "the server heard of it only when the rule had done its work"
