"""The words a session has for its driver: each is used, and each is one that drivers perform."""

from collections.abc import Mapping
from typing import ClassVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from proxy.ruleset.guard import Decision, Query, QueryResult
from proxy.ruleset.rule import EMPTY, RuleFile, RuleSet
from proxy.session.outputs import LoadSnapshot, Output, RunInBackground, Shape, StoreSnapshot
from proxy.session.session import Session
from proxy.shaping.pipeline import shape
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Memory
from proxy.transforms.base import Call, Parameter
from tests.given import answer, call, document, line, rule, rules


class Asking(Struct, frozen=True):
    """A guard that asks before each call."""

    name: ClassVar[str] = "asking"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, found: QueryResult | None) -> Decision:
        return Query("status")


def test_a_short_conversation_uses_every_output() -> None:
    paged = "{paginate: {at: items, limit: 1, drop_on: [write]}}"
    made = rules(f"- {{tools: list, response: [{paged}]}}\n- {{tools: secret, hide: true}}")
    asking = replace(rule("tools: guarded"), guard=Asking())
    made = RuleSet((*made.files, RuleFile(name="more.yaml", rules=(asking,))))
    current = [EMPTY]
    session, store = Session(lambda *_: current[0], Meters().of, print), Memory()
    used: set[type] = set()

    def perform(outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            used.add(type(output))
            if isinstance(output, Shape):
                perform(session.shaped(output.job, shape(output.job)))
            elif isinstance(output, LoadSnapshot):
                perform(session.loaded(output.token, store.get(output.key)))
            elif isinstance(output, RunInBackground):
                perform(output.then(output.do()))
            elif isinstance(output, StoreSnapshot):
                store.put(output.key, output.snapshot)

    listed = {"capabilities": {"tools": {"listChanged": True}}}
    for method, said in (("initialize", listed), ("tools/list", {"tools": [{"name": "secret"}]})):
        perform(session.from_client(line(id=1, method=method)))
        perform(session.from_server(answer(said)))
    current[0] = made
    perform(session.from_client(call("list", {})))
    perform(session.from_server(answer(document({"items": [1, 2]}))))
    perform(session.from_client(call("list", {"offset": 1})))
    perform(session.from_client(call("secret", {})))
    perform(session.from_client(call("write", {})))
    perform(session.from_client(call("guarded", {})))
    perform(session.from_server(b"starting up"))
    perform(session.from_client(line(id=2, method="tools/list")))
    perform(session.from_server(answer({"tools": [], "more": "x" * 300_000}, 2)))

    assert used == set(get_args(Output))
