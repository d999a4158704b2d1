"""JSON in JavaScript's spelling is what Node writes, or nothing if a digit would be lost."""

import json
import subprocess
from random import Random

import pytest
from mcp_abridge.document.javascript import spelled

from tests.platforms import on_posix
from tests.servers.install import node

WRITES = """
const documents = JSON.parse(require("fs").readFileSync(0));
console.log(JSON.stringify(documents.map((each) => JSON.stringify(JSON.parse(each)))));
"""
MEMBERS = '{"b": 1, "10": [], "9": {"x": null}, "01": 1, "4294967294": 2, "4294967295": 3, "b": 2}'
NUMBERS = (
    "[52.0, 1.10, -52.0, -0, -0.0, 1e2, 1E-7, 1.5e-7, 0.000001, 0.0001, 1e15, 1e16, 1e20, 1e21,"
    " 1.5e300, 5e-324, 9007199254740992, 123456789012345.6, 100, 4e0]"
)
TEXTS = r'["\u00e9\ud83d\ude00 \u2028\u007f\u001f", "\/\b\f\n\r\t\"\\", "", " "]'


@on_posix("no Node that runs under Wine")
def test_the_spelling_is_that_of_node() -> None:
    random = Random(7)
    scales = [10.0 ** random.randint(-25, 25) for _ in range(2_000)]
    documents = [MEMBERS, NUMBERS, TEXTS, json.dumps([random.random() * each for each in scales])]
    run = [node(), "-e", WRITES]
    output = subprocess.run(run, input=json.dumps(documents).encode(), stdout=-1, check=True).stdout
    assert [spelled(each.encode()) for each in documents] == json.loads(output)


@pytest.mark.parametrize(
    "text",
    ["12345678901234567890", "0.12345678901234567890", "1e400", "1e-99999999999999999999", "NaN",
     "9" * 5_000, '"\\ud800"', "[", "[" * 100_000],
)  # fmt: skip
def test_what_javascript_cannot_keep_has_no_spelling(text: str) -> None:
    assert spelled(text.encode()) is None
