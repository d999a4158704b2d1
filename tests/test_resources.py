"""A resource of 300 kB, read by the official client through each front, in one era or both."""

import re
import sys
from pathlib import Path

import pytest

from tests.faults.scale import scaled
from tests.python_client import Mode
from tests.serving import FRONTS
from tests.wrapped import ROOT

SERVER = [sys.executable, str(ROOT / "tests" / "fixtures" / "sdk_server.py")]
URI = "sdk://log"
WAYS: tuple[tuple[str, Mode], ...] = (
    *(("stdio", "legacy"), ("http", "2026-07-28"), ("http to a command", "legacy")),
    *(("stdio", "2026-07-28"), ("http", "legacy"), ("http to a command", "2026-07-28")),
)


@pytest.mark.parametrize(("front", "mode"), WAYS[: scaled(2, 6)])
def test_a_long_resource_is_cut_and_its_notice_names_the_uri_of_the_rest(
    front: str, mode: Mode, tmp_path: Path
) -> None:
    rules, log = tmp_path / "rules.yaml", tmp_path / "log"
    rules.write_text("version: 1\nrules: [{resources: 'sdk:*'}]\n")
    with FRONTS[front]([*SERVER, str(log)], [rules], tmp_path) as way, way.connect(mode) as client:
        [beginning] = client.read(f"{URI}#view=head(1)")
        assert beginning["text"].startswith("step 0 took 0 ms\n")
        [first] = client.read(URI)
        assert len(first["text"]) < 3000
        assert first["text"].startswith("step 0 took 0 ms\nstep 1 took 1 ms\n")
        [following] = re.findall(rf"read ({URI}#view=text%5B\d+:\d+%5D);", first["text"])
        [second] = client.read(following)
        assert second["text"].startswith("step ")
        assert 5000 < len(second["text"]) < 8000
        assert second["text"][:5000] not in first["text"]
        [last] = client.read(f"{URI}#view=tail(1)")
        assert last["text"] == "step 11999 took 29 ms\n"
        # For the first view nothing was stored; it was for all others.
        assert log.read_text() == 2 * "log\n"
