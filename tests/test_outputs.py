"""The words a session has for its driver: each is used, and each is one that drivers perform."""

from typing import get_args

from proxy.meter import Meter
from proxy.outputs import Keep, Load, Output, Shape
from proxy.pipeline import shape
from proxy.session import Session
from proxy.snapshots import Memory
from tests.given import answer, call, document, rules


def test_a_short_conversation_uses_every_output() -> None:
    paged = "{paginate: {at: items, limit: 1, drop_on: [write]}}"
    made = rules(f"- {{tools: list, response: [{paged}]}}\n- {{tools: secret, hide: true}}")
    session, store = Session(lambda *_: made, Meter(), print), Memory()
    used: set[type] = set()

    def perform(outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            used.add(type(output))
            if isinstance(output, Shape):
                perform(session.shaped(output.job, shape(output.job)))
            elif isinstance(output, Load):
                perform(session.loaded(output.token, store.get(output.key)))
            elif isinstance(output, Keep):
                store.put(output.key, output.snapshot)

    perform(session.from_client(call("list", {})))
    perform(session.from_server(answer(document({"items": [1, 2]}))))
    perform(session.from_client(call("list", {"offset": 1})))
    perform(session.from_client(call("secret", {})))
    perform(session.from_client(call("write", {})))
    perform(session.from_server(b"starting up"))

    assert used == set(get_args(Output))
