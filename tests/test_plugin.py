"""What Python beside a rule file imports."""

import re
from pathlib import Path

from proxy import plugin

ROOT = Path(__file__).resolve().parents[1]
USERS = [*ROOT.glob("examples/*/*.py"), *ROOT.glob("tests/cases/python/*.py")]


def test_python_of_users_imports_from_the_plugin_module_alone() -> None:
    for file in [*USERS, ROOT / "rules" / "PYTHON.md"]:
        modules = set(re.findall(r"^from (proxy\S*) import", file.read_text(), re.MULTILINE))
        assert modules <= {"proxy.plugin"}, file


def test_every_name_of_the_plugin_module_is_there() -> None:
    assert all(hasattr(plugin, name) for name in plugin.__all__)
