"""A session's requests to its store and workers, in order; their failures cost no response."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from mcp_abridge.errors import StoreError
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import SessionState
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.redis import Redis
from mcp_abridge.storage.snapshots import Key, Memory, Snapshot, Store
from mcp_abridge.transports.driver import Driver
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.workers.pool import Workers

from tests.builders import EMPTY, answer, call, document, line, rules, texts

PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")
DROPPED = rules(
    "- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [write]}}]}"
)
ITEMS = answer(document({"items": [1, 2, 3]}))
LISTING = answer({"tools": [{"name": "list", "inputSchema": {"type": "object"}}]}, 9)


class RemoteStore(Memory):
    """A store that other replicas have as well; it may be out of reach."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.unreachable = False

    def put(self, key: Key, snapshot: Snapshot) -> None:
        self._check()
        super().put(key, snapshot)

    def get(self, key: Key) -> Snapshot | None:
        self._check()
        return super().get(key)

    def drop(self, key: Key) -> None:
        self._check()
        super().drop(key)

    def _check(self) -> None:
        if self.unreachable:
            raise StoreError("the store is away")


def make_driver(
    rules: RuleSet | Callable[..., RuleSet] = EMPTY,
    store: Store | None = None,
    aside: Callable[[bytes], None] | None = None,
    store_failed: Callable[[str], None] | None = None,
) -> Driver:
    select = rules if callable(rules) else (lambda *_: rules)
    store = Memory() if store is None else store
    log = Log("error").warning
    state = SessionState(
        select, Meters().of, log, store, scope="s", store_failed=store_failed or log
    )
    return Driver(Session(state), Workers(), aside)


@pytest.mark.parametrize("store", [Memory, RemoteStore])
async def test_a_call_drops_the_pages_that_it_invalidates(store: type[Memory]) -> None:
    driver = make_driver(DROPPED, store())
    await driver.from_client(line(id=9, method="tools/list"))
    await driver.from_server(LISTING)
    await driver.from_client(call("list", {}))
    await driver.from_server(ITEMS)
    assert (await driver.from_client(call("write", id=2))).to_server == [call("write", id=2)]
    output = await driver.from_client(call("list", {"offset": 2}, id=3))
    assert "nothing is kept" in texts(output.to_client[0])[0]


async def test_an_unreachable_store_costs_only_pages() -> None:
    store = RemoteStore()
    driver = make_driver(DROPPED, store)
    store.unreachable = True
    await driver.from_client(call("list", {}))
    [first] = (await driver.from_server(ITEMS)).to_client
    assert '"items":[1,2]' in texts(first)[0]
    [later] = (await driver.from_client(call("list", {"offset": 2}))).to_client
    assert "the store is away" in texts(later)[0]
    assert (await driver.from_client(call("write", id=2))).to_server == [call("write", id=2)]


async def test_a_redis_that_is_away_costs_a_call_one_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcp_abridge.storage.redis._PAUSE", 60.0)
    lines: list[str] = []
    driver = make_driver(PAGES, Redis("redis://127.0.0.1:1/0"), store_failed=lines.append)
    key = Key("s", "", "known")
    await driver.recall(key)
    await driver.from_client(call("list", {}))
    await driver.from_server(ITEMS)
    await driver.share(key)
    [text] = lines
    assert text.startswith("what other replicas know of the server was not read: redis at 127.0")


async def test_replicas_learn_from_each_other_at_the_start_and_with_the_next_call() -> None:
    store, key = RemoteStore(), Key("s", "", "known")
    first, second, late, last = (make_driver(PAGES, store) for _ in range(4))
    own = {"name": "list", "inputSchema": {"type": "object", "properties": {"offset": {}}}}
    await first.share(key)
    await late.recall(key)
    await second.from_client(line(id=9, method="tools/list"))
    await second.from_server(answer({"tools": [own]}, 9))
    await second.share(key)
    await last.recall(key)
    # Where the server's own `offset` is not known, it is the proxy's.
    offset = call("list", {"offset": 7})
    assert (await make_driver(PAGES).from_client(offset)).to_server == []
    for each in (first, late, last):
        assert (await each.from_client(offset)).to_server == [offset]


async def test_a_call_is_forgotten_if_its_client_disconnects() -> None:
    class StalledStore(RemoteStore):
        def get(self, key: Key) -> Snapshot | None:
            waiting.set()
            assert go.wait(20)
            return None

    waiting, go = threading.Event(), threading.Event()
    driver = make_driver(PAGES, StalledStore())
    task = asyncio.create_task(driver.from_client(call("list", {"offset": 2})))
    await asyncio.to_thread(waiting.wait, 20)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    go.set()
    assert not driver.session.state.inflight.suspended


async def test_missing_or_unreadable_knowledge_of_replicas_is_no_error() -> None:
    store, key = RemoteStore(), Key("s", "", "known")
    driver = make_driver(PAGES, store)
    await driver.recall(key)
    store.put(key, Snapshot(b"", b"no JSON"))
    await driver.recall(key)
    store.unreachable = True
    await driver.recall(key)
    await driver.share(key)
    assert (await driver.from_client(call("list", {}))).to_server == [call("list", {})]


async def test_calls_at_the_same_time_read_once_what_other_replicas_know() -> None:
    class SlowStore(RemoteStore):
        def get(self, key: Key) -> Snapshot | None:
            reads.append(key)
            time.sleep(0.02)
            return super().get(key)

    reads: list[Key] = []
    driver = make_driver(PAGES, SlowStore())
    await driver.recall(Key("s", "", "known"))
    await asyncio.gather(*(driver.from_client(call("list", {}, id=id)) for id in range(9)))
    assert len(reads) == 2
