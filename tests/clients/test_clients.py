"""The official SDKs in the place of the suite's clients, and the page that the suite writes."""

from pathlib import Path

import pytest

from tests.clients.cases import Bench, cases
from tests.clients.install import version
from tests.clients.page import PAGE
from tests.clients.programs import CLIENTS, SDKS, Client


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("client", SDKS, ids=[client.name for client in SDKS])
def test_no_result_is_lost_or_changed_on_its_way_to_a_model(client: Client, tmp_path: Path) -> None:
    bench = Bench(client, tmp_path)
    checks = [check for case in cases(client) for check in case(bench)]
    assert len(checks) == 20
    assert [check for check in checks if check.problem] == []


def test_the_page_has_a_row_for_each_client_at_its_pinned_version() -> None:
    rows = [line.split(" | ")[:2] for line in PAGE.read_text().splitlines()]
    missing = [
        client.name
        for client in CLIENTS
        if [f"| {client.name}", version(client.program or client.name)] not in rows
    ]
    assert missing == []
