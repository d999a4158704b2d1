"""Names without number and without end, row 46: what a sidecar counts and keeps stays small.

Clients name tools, methods, themselves, sessions, ids and tokens as they like.
"""

from pathlib import Path

import pytest
from mcp_abridge.storage.ledger_totals import rows
from mcp_abridge.storage.meter import OTHER
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.processes import until
from tests.faults.routes import META, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import Sidecar, call, get, post, request, serving
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


def label_sets(sidecar: Sidecar) -> dict[str, list[dict[str, str]]]:
    """Return the sets of labels of each metric; those of a histogram's buckets count once."""
    return {
        family.name: [
            sample.labels
            for sample in family.samples
            if not sample.name.endswith(("_bucket", "_sum"))
        ]
        for family in text_string_to_metric_families(sidecar.ask(get("/metrics")).body.decode())
        if family.name.startswith("mcp_")
    }


@pytest.mark.fault(46, "http")
def test_a_hundred_thousand_names_are_a_thousand_sets_of_labels(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite3"
    (tmp_path / "rules.yaml").write_text(RULES)
    options = ("--ledger", str(ledger), "--rules", str(tmp_path / "rules.yaml"))
    with serving(*options, *naughty("plain")) as sidecar, sidecar.client() as client:

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
            info = {"name": f"client {number}", "version": "1"}
            client.send(modern(number, _meta={**META, CLIENT: info}))
            assert client.answer().status == 200
        families = label_sets(sidecar)
        until(ledger.exists)
        until(lambda: sum(each.calls for each in rows(str(ledger))) == FIRST + NAMES + CLIENTS)
    assert MOST / 2 < len(families["mcp_abridge_calls"]) <= max(map(len, families.values())) <= MOST
    labels = [value for sets in families.values() for each in sets for value in each.values()]
    assert not [value for value in labels if value.startswith("client")]
    assert {"route": "/mcp", "tool": OTHER, "outcome": "untouched"} in families["mcp_abridge_calls"]
    names = {each.name for each in rows(str(ledger))}
    assert (len(names), OTHER in names) == (MOST + 1, True)
    clients = {each.name for each in rows(str(ledger), by="client")}
    assert OTHER in clients
    assert len(clients) <= 102
