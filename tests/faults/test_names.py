"""Names without number and without end, row 46: what a sidecar counts and keeps stays small.

Clients name tools, methods, themselves, sessions, ids and tokens as they like.
"""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy.storage.ledger import rows
from proxy.storage.meter import OTHER
from tests.faults.processes import until
from tests.faults.routes import META, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import (
    Sidecar,
    call,
    get,
    post,
    request,
    serving,
)
from tests.faults.wrapper import naughty

MB = 1 << 20
MOST = 1000  # sets of labels
AT_ONCE = 100
PER_SESSION = 2_000
FIRST = 1_100
NAMES = scaled(2_000, 98_900)
CLIENTS = 150
CLIENT = "io.modelcontextprotocol/clientInfo"
RULES = "version: 1\nrules:\n- {tools: '*', response: [{paginate: {limit: 10}}]}\n"


def bounded(sidecar: Sidecar) -> dict[str, list[dict[str, str]]]:
    """Return the sets of labels of each metric, of which there may be a thousand.

    Those of a histogram's buckets count once.
    """
    raw = sidecar.ask(get("/metrics")).body.decode()
    families = {
        family.name: [
            sample.labels
            for sample in family.samples
            if not sample.name.endswith(("_bucket", "_sum"))
        ]
        for family in text_string_to_metric_families(raw)
        if family.name.startswith("mcp_")
    }
    assert max(map(len, families.values())) <= MOST
    labels = {value for sets in families.values() for each in sets for value in each.values()}
    assert not {each for each in labels if re.match("evil|client|session|/|path", each)}
    return families


@pytest.mark.fault(46, "http")
def test_a_hundred_thousand_names_are_a_thousand_sets_of_labels(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite3"
    (tmp_path / "rules.yaml").write_text(RULES)
    options = ("--ledger", str(ledger), "--rules", str(tmp_path / "rules.yaml"))
    with serving(*options, *naughty("plain")) as sidecar:
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
        families = bounded(sidecar)
        until(ledger.exists)
        until(lambda: sum(each.calls for each in rows(str(ledger))) == FIRST + NAMES + CLIENTS)
    assert len(families["mcp_abridge_calls"]) > MOST / 2
    assert {"tool": OTHER, "outcome": "untouched"} in families["mcp_abridge_calls"]
    names = {each.name for each in rows(str(ledger))}
    assert len(names) == MOST + 1
    assert OTHER in names
    clients = {each.name for each in rows(str(ledger), by="client")}
    assert OTHER in clients
    assert len(clients) <= 102


def me(name: str) -> dict[str, object]:
    return {**META, CLIENT: {"name": name, "version": "1"}}
