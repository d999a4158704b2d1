"""Names without number and without end, row 46: what a sidecar counts and keeps stays small.

Clients name tools, methods, themselves, sessions, ids and tokens as they like.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.storage.ledger import rows
from proxy.storage.meter import OTHER
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.routes import META, Naughty, modern, stateless
from tests.faults.scale import scaled
from tests.faults.sidecar import (
    INITIALIZE,
    Sidecar,
    call,
    get,
    keys,
    post,
    request,
    serving,
)
from tests.faults.wrapper import naughty
from tests.raw_http import Asked, initialized, whole

MB = 1 << 20
MOST = 1000  # sets of labels
AT_ONCE = 100
PER_SESSION = 2_000
FIRST = 1_100
NAMES = scaled(2_000, 98_900)
CLIENTS = 150
CLIENT = "io.modelcontextprotocol/clientInfo"
RULES = "version: 1\nrules:\n- {tools: '*', response: [{paginate: {limit: 10}}]}\n"


ANSWERING = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    each = said if isinstance(said, list) else [said]
    answers = [{"jsonrpc": "2.0", "id": one["id"], "result": {"content": []}} for one in each]
    print(json.dumps(answers if isinstance(said, list) else answers[0]), flush=True)
"""


class Unread(Naughty):
    """One that answers without reading more of a request than its id, since that takes its time."""

    def _answer(self, asked: Asked) -> Iterator[bytes]:
        id = re.findall(rb'"id":("[^"]*"|\d+)', asked.body)[0]
        said = initialized(id) if b'"initialize"' in asked.body[:99] else result(id)
        yield whole(said, "200 OK", f"Mcp-Session-Id: {next(self.sessions)}", "Connection: close")


def figures(sidecar: Sidecar) -> dict[str, list[dict[str, str]]]:
    """Return the sets of labels of each metric; those of a histogram's buckets once."""
    found: dict[str, list[dict[str, str]]] = {}
    raw = sidecar.ask(get("/metrics")).body.decode()
    for family in text_string_to_metric_families(raw):
        if family.name.startswith("mcp_"):
            found[family.name] = [
                sample.labels
                for sample in family.samples
                if not sample.name.endswith(("_bucket", "_sum"))
            ]
    return found


def bounded(sidecar: Sidecar) -> dict[str, list[dict[str, str]]]:
    """Return the same, once it was seen that each metric has at most a thousand."""
    found = figures(sidecar)
    assert max(map(len, found.values())) <= MOST
    labels = {value for sets in found.values() for each in sets for value in each.values()}
    assert not {each for each in labels if re.match("evil|client|session|/|path", each)}
    return found


@pytest.mark.fault(46, "http")
def test_a_hundred_thousand_names_are_a_thousand_sets_of_labels(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite3"
    (tmp_path / "rules.yaml").write_text(RULES)
    options = ("--ledger", str(ledger), "--rules", str(tmp_path / "rules.yaml"))
    with serving(*options, "--", sys.executable, "-c", ANSWERING) as sidecar:
        with sidecar.client() as client:

            def flood(first: int, count: int) -> None:
                session = ""
                for number in range(first, first + count, AT_ONCE):
                    if not (number - first) % PER_SESSION:
                        # What was answered is kept as long as its session, up to a bound.
                        sidecar.ask(request("DELETE", "/mcp", session or "X: y"))
                        session = sidecar.begin()
                    batch = [call(n, f"tool {n}") for n in range(number, number + AT_ONCE)]
                    client.send(post(b"[" + b",".join(batch) + b"]", session))
                    assert client.answer().body.count(b'"result"') == AT_ONCE

            # All that is counted by itself: from then on nothing may grow.
            flood(0, FIRST)
            with sidecar.in_memory(32 * MB):
                flood(FIRST, NAMES)
            for number in range(CLIENTS):
                client.send(modern(number, _meta=me(f"client {number}")))
                assert client.answer().status == 200
        found = bounded(sidecar)
        until(ledger.exists)
        until(lambda: sum(each.calls for each in rows(str(ledger))) == FIRST + NAMES + CLIENTS)
    assert len(found["mcp_abridge_calls"]) > MOST / 2
    assert {"tool": OTHER, "outcome": "untouched"} in found["mcp_abridge_calls"]
    names = {each.name for each in rows(str(ledger))}
    assert len(names) == MOST + 1
    assert OTHER in names
    clients = {each.name for each in rows(str(ledger), by="client")}
    assert OTHER in clients
    assert len(clients) <= 102


LONG = "x" * 1_000_000
NAMED: dict[str, Callable[[str, str], bytes]] = {
    "a client": lambda name, session: modern(2, "ok", _meta=me(name)),
    "a client of a session": lambda name, session: post(
        INITIALIZE.replace(b'"raw"', f'"{name}"'.encode())
    ),
    "a tool": lambda name, session: post(call(2, name, _meta=META), *stateless("")),
    "an id in a session": lambda name, session: post(call(name), session),
    "a token in a session": lambda name, session: post(
        call(2, _meta={"progressToken": name}), session
    ),
}


def me(name: str) -> dict[str, object]:
    return {**META, CLIENT: {"name": name, "version": "1"}}


# Before a URL a name is read in each place that one may stand in; before a command in that of a
# session, whose answers to long ids are kept, up to a bound.
PLACES = {
    "URL": ("a client", "a tool", "an id in a session", "a token in a session"),
    "command": ("a client of a session", "a token in a session"),
}


@pytest.mark.fault(46, "http")
@pytest.mark.parametrize(("place", "names"), PLACES.items(), ids=PLACES)
def test_names_of_megabytes_are_not_kept(
    place: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    rules = ("--rules", str(tmp_path / "rules.yaml"))
    with Unread() as server:
        few = keys(limits={"sessions": 5})
        before = {
            "URL": (server.url,),
            "command": (*few, *naughty("plain")),
        }
        with serving(*rules, *before[place]) as sidecar:
            for name in names:
                flood(sidecar, NAMED[name])
                server.asked.clear()


def flood(sidecar: Sidecar, raw: Callable[[str, str], bytes]) -> None:
    session = sidecar.begin()
    with sidecar.in_memory(16 * MB), sidecar.client() as client:
        for number in range(scaled(24, 120)):
            client.send(raw(f"{number}{LONG}", session))
            assert client.answer().status == 200
