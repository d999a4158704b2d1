"""The calls that a server runs as tasks, and the results inside of what it says about a task.

In MCP 2025-11-25 a client asks for a task, and `tasks/result` has the call's result. In 2026-07-28
(the extension io.modelcontextprotocol/tasks, SEP-2663) the server decides, and the final result is
a member of the task in `tasks/get` and `notifications/tasks`.
"""

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.message import members, string_at, value_at
from mcp_abridge.document.tree import encode
from mcp_abridge.session.inflight import GET_TASK, PendingRequest
from mcp_abridge.session.state import SessionState

GETS_RESULT = frozenset({GET_TASK, "tasks/result"})
"""The methods whose response has, or is, the result of a task's call."""

NEWS = "notifications/tasks"
"""The notification that tells the state of a task, with its result at the end."""

_FINAL = ("result", "error")  # of a task in tasks/get and NEWS


def begins(state: SessionState, result: Raw, call: PendingRequest) -> bool:
    """Return True if a result names a task that the call became; record it then."""
    is_task = string_at(result, "resultType") == "task"
    name = string_at(result if is_task else value_at(result, "task"), "taskId")
    if name is not None:
        state.tasks.add(_key(name), replace(call, as_task=False, trace=None, record=None))
    return name is not None


def awaits(
    state: SessionState, params: Raw, request: PendingRequest, scope: str | None = None
) -> PendingRequest:
    """Return the call of the task that `params` name, under the slot of `request`.

    The result of a task that this session has not begun, or not for this `scope`, gets the budget
    alone: which tool it is of cannot be known, so neither its rule, nor the call for a view.
    """
    name = string_at(params, "taskId") or ""
    call = state.tasks.get(_key(name))
    if call is None or scope not in (None, call.scope):
        budget = state.rules.select().otherwise
        # Without a tool, it is not counted.
        return replace(request, tool="a task", rule=budget, cacheable=False, is_repeat=True)
    if call.rule is None:
        return request
    return replace(call, exchange=request.exchange, id=request.id, method=request.method)


def final(state: SessionState, raw: bytes, task: Raw, call: PendingRequest) -> bytes | None:
    """Return the call's response that a line about a task holds, None before it has one.

    `inside` puts it back. Raises DocumentError if the task cannot be read.
    """
    parts = members(task)
    name = next((each for each in _FINAL if each in parts), None)
    if name is None:
        return None
    line = encode({"jsonrpc": "2.0", "id": Raw(call.id), name: parts[name]})
    place = "result" if call.method == GET_TASK else "params"
    call.around = message.replaced(raw, **{place: {**parts, name: None}})
    origin = state.tasks.get(_key(string_at(task, "taskId") or ""))
    if origin is not None:
        origin.is_repeat = True  # it is counted once, however often the client asks
    return line


def inside(call: PendingRequest, line: bytes) -> bytes:
    """Return the line about a task with this response in place of the one that `final` found."""
    place = "result" if call.method == GET_TASK else "params"
    task, response = members(members(call.around)[place]), members(line)
    for name in _FINAL:
        task.pop(name, None)
        if name in response:
            task[name] = response[name]
    return message.replaced(call.around, **{place: task})


def _key(name: str) -> bytes:
    # A JSON string may hold a lone surrogate.
    return name.encode("utf-8", "surrogatepass")
