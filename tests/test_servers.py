"""Tests do not install what they need: `make servers` does."""

from pathlib import Path

import pytest

from tests.conformance import install as conformance
from tests.servers import install


def test_what_is_not_installed_is_named_and_not_downloaded_by_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for installer in (install, conformance):
        monkeypatch.setattr(installer, "CACHE", tmp_path / "nothing")
        with pytest.raises(install.NotInstalled, match=r"nothing/.* does not hold .*make servers"):
            installer.require()
    assert not (tmp_path / "nothing").exists()
