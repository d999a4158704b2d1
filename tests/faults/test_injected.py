"""Something fails at every call that a session makes, in the wrapper and the sidecar as processes.

Each request gets one answer, the right one or an error, and the next call works as ever.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.faults import changing
from tests.faults.asking import Client, on_stdio
from tests.faults.scale import scaled
from tests.faults.sidecar import compact
from tests.given import document, said

HERE = Path(__file__).parent
RULES = ("--allow-python", "--rules", str(HERE / "injected.yaml"))
SECRET = "secret"


class Scene(Struct, frozen=True):
    """A request that something fails at, and one that must have been answered before, if any.

    `closed`: what the server answers is never let go as it is.
    """

    method: str
    params: dict[str, Any] = {}
    before: dict[str, Any] | None = None
    closed: bool = False

    def message(self, id: int | str) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": id, "method": self.method, "params": self.params}

    def prepared(self, client: Client, id: int) -> None:
        if self.before is not None:
            client.ask(compact({**self.message(id), "params": self.before}))


def call(tool: str, answer: dict[str, Any], closed: bool = False, **arguments: Any) -> Scene:
    params = {"name": tool, "arguments": {"answer": answer, **arguments}}
    return Scene("tools/call", params, closed=closed)


def later(
    tool: str, answer: dict[str, Any], *, before: dict[str, Any] | None = None, **arguments: Any
) -> Scene:
    """Return a call that needs an earlier one, as that of a page or view does."""
    earlier = {"name": tool, "arguments": {"answer": before or answer}}
    arguments = {"answer": answer, **arguments}
    return Scene("tools/call", {"name": tool, "arguments": arguments}, earlier)


ITEMS = {"result": document({"items": [1, 2, 3], "secret": SECRET})}
LONG = {"result": document({"items": list(range(300))})}
SECRETS = {"result": document({"open": 1, "secret": SECRET})}
TEXT = {"result": said("done")}
SCENES = {
    "a ping": Scene("ping"),
    "the list of tools": Scene("tools/list", closed=True),
    "a long list of tools": Scene("tools/list", {"_meta": changing.LONG}, closed=True),
    "a page": call("list", ITEMS),
    "a later page": later("list", ITEMS, offset=2),
    "a bound": call("get", LONG),
    "a view": later("get", LONG, view="items[5:7]"),
    "a rule that withholds": call("read", SECRETS, closed=True),
    "an answer that it cannot read": call("read", {"result": {"content": SECRET}}, closed=True),
    # Five failures in a row with nothing but errors between them would be too many.
    "an error": later("code", {"result": {**TEXT["result"], "isError": True}}, before=TEXT),
    "an error response": later("code", {"error": {"code": 5, "message": "no"}}, before=TEXT),
    "a promise": call("job", {"result": document({"n": 1})}),
    "a question first": call("act", TEXT, how="fine", then="pass"),
    "a question with a long answer": call("act", TEXT, how="long", then="pass"),
    "a question without an answer": call("act", TEXT, how="never", then="pass", seconds=0.01),
    "an answer of a guard": call("act", TEXT, how="fine"),
    "a hidden tool": call("gone", TEXT),
    "a bound argument": call("few", TEXT, n=2),
    "a wrong argument": call("few", TEXT, n=4),
    "no rule": call("other", TEXT),
}


def listed(found: dict[str, Any], right: list[Any]) -> bool:
    """Say whether the same tools are listed; a schema that cannot be said may be missing."""
    names = [
        [tool["name"] for tool in each["tools"]]
        for each in (found["result"], *right)
        if "tools" in each
    ]
    return len(names) == 2 and names[0] == names[1]


def is_error(found: dict[str, Any]) -> bool:
    return "error" in found or bool(found["result"].get("isError"))


@pytest.mark.fault(34, "stdio")
def test_wherever_a_session_fails_each_request_has_one_answer_and_the_next_call_works(
    tmp_path: Path,
) -> None:
    file = tmp_path / "places"
    file.touch()
    program = (sys.executable, str(HERE / "injecting.py"), str(file))
    step = scaled(3, 1)
    with on_stdio(*RULES, program=program) as client:
        for name, scene in list(SCENES.items())[::step]:
            fails_at_every_place(client, name, scene, file)
    places = file.read_text().splitlines()
    print(f"{len(places)} places")
    assert len(places) > scaled(300, 900) // step
    assert len(set(places)) == len(places)


def fails_at_every_place(client: Client, name: str, scene: Scene, file: Path) -> None:
    scene.prepared(client, 2)
    expected = client.ask(compact(scene.message(3)))
    assert SECRET not in expected.decode()
    for round in range(10_000):
        known = file.stat().st_size
        scene.prepared(client, 10 + round)
        id = f"fail-{round} {name}"
        message = scene.message(id)
        raw = client.ask(compact(message))
        where = name, file.read_text()[known:], raw
        found = json.loads(raw)
        assert found["id"] == id, where
        right = [json.loads(expected)["result"]] if "result" in json.loads(expected) else []
        right += [] if scene.closed else [changing.answered(message).get("result")]
        assert is_error(found) or found["result"] in right or listed(found, right), where
        assert not scene.closed or SECRET not in raw.decode(), where
        scene.prepared(client, 20_000 + round)
        assert client.ask(compact(scene.message(3))) == expected, where
        if file.stat().st_size == known:
            return
    raise AssertionError(f"{name}: there is no end of places")
