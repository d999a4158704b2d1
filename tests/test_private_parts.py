"""Private names of libraries that the package uses are still there after an upgrade."""

import _queue
import _signal  # type: ignore[import-not-found]
import _thread
from argparse import ArgumentParser
from typing import Any

import jmespath.functions
import jmespath.parser
import jmespath.visitor
import pytest
from aiohttp.web_protocol import RequestHandler

# What has the names, the names, and the module that uses them.
PRIVATE: list[tuple[Any, tuple[str, ...], str]] = [
    (_queue, ("Empty", "SimpleQueue"), "transports/stdio/shutdown.py"),
    (_signal, ("signal", "SIGTERM"), "system/posix.py"),
    (_thread, ("allocate_lock", "start_new_thread"), "transports/stdio/relay.py"),
    (ArgumentParser(), ("_actions", "_option_string_actions"), "cli/options.py"),
    (
        RequestHandler,
        ("_current_request", "_messages", "_waiter"),
        "transports/sidecar/connection.py",
    ),
    (
        jmespath.parser.Parser,
        ("_lookahead", "_parse_index_expression", "_project_if_slice", "_token_led_lbracket"),
        "query/parser.py",
    ),
    (jmespath.visitor, ("_Expression",), "query/jmespath.py"),
    (jmespath.visitor.TreeInterpreter(), ("_functions", "_is_false"), "query/jmespath.py"),
    (
        jmespath.functions.Functions,
        (
            "_create_key_func",
            "_func_avg",
            "_func_contains",
            "_func_ends_with",
            "_func_max_by",
            "_func_min_by",
            "_func_sort_by",
            "_func_starts_with",
            "_func_sum",
        ),
        "query/functions.py and query/amounts.py",
    ),
]


@pytest.mark.parametrize(("library", "names", "user"), PRIVATE)
def test_private_names_of_a_library_are_still_there(
    library: Any, names: tuple[str, ...], user: str
) -> None:
    missing = [name for name in names if not hasattr(library, name)]
    assert not missing, f"{library!r} has no {missing} in this version: {user} needs another way"
