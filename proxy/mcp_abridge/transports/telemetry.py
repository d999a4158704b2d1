"""OpenTelemetry, off the way of every call: its import takes a quarter of a second, its end longer.

A thread imports it while the server starts. A collector that does not answer costs a line in the
log, no call its time, and the end of the process no more than END seconds.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from mcp_abridge.errors import raised
from mcp_abridge.session.tracing import CallTrace, Tracer
from mcp_abridge.storage.meter import Row
from mcp_abridge.transports.log import Log

if TYPE_CHECKING:
    from mcp_abridge.transports.spans import Exports

SIGNALS = ("TRACES", "METRICS")
"""The signals of OpenTelemetry that there are here, as the variables name them."""

END = 1.5
"""The most seconds that the last spans and metrics may take to be sent."""

_LOADING = 10.0  # seconds that a first call waits for the import
_MISSING = (
    "the environment names an OpenTelemetry collector, but nothing is sent to it: "
    "pip install 'mcp-abridge[otel]'"
)


class Telemetry:
    """The spans and metrics of a process, as the standard variables say; nothing here raises.

    `version` returns the version of this program.
    """

    def __init__(self, log: Log, version: Callable[[], str]) -> None:
        self._log, self._version = log, version
        self._loaded = Event()
        self._exports: Exports | None = None
        if not _in_thread(self._load):
            self._loaded.set()

    def tracer(self, upstream: str | tuple[str, ...]) -> Tracer:
        """Return the tracer of calls to a server: one at a URL, or a command."""
        url = upstream if isinstance(upstream, str) else None

        def begin(*call: Any) -> CallTrace | None:
            exports = self._ready()
            return None if exports is None else exports.begin(url, *call)

        return begin

    def observe(self, row: Row, route: str = "") -> None:
        """Count the calls of a meter's row; see `mcp_abridge.storage.meter.Meters`."""
        if (exports := self._ready()) is not None:
            exports.count(row, route)

    def close(self) -> None:
        """Send what is left, for at most END seconds."""
        if self._exports is not None and (closing := _in_thread(self._exports.close)):
            closing.join(END)

    def _ready(self) -> "Exports | None":
        if not self._loaded.wait(_LOADING):
            self._loaded.set()  # no later call waits, too
        return self._exports

    def _load(self) -> None:
        try:
            from mcp_abridge.transports.spans import otlp_exports

            warn = self._log.warning
            if signals := [each for each in SIGNALS if configured(each) and usable(each, warn)]:
                self._exports = otlp_exports(self._version(), warn, signals)
        except ImportError:
            self._log.debug(_MISSING)
        except Exception as error:  # a variable that the SDK refuses, no memory for a thread, ...
            self._log.warning(f"no spans and no metrics are sent: {raised(error)}")
        finally:
            self._loaded.set()


def _in_thread(do: Callable[[], None]) -> Thread | None:
    thread = Thread(target=do, name="telemetry", daemon=True)
    with suppress(RuntimeError):  # no memory for a thread
        thread.start()
        return thread
    return None


def configured(signal: str) -> bool:
    """Return True if the environment names a collector, or an exporter, for TRACES or METRICS."""
    exporter = os.environ.get(f"OTEL_{signal}_EXPORTER", "")
    if exporter == "none" or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    endpoints = (f"OTEL_EXPORTER_OTLP_{part}ENDPOINT" for part in ("", f"{signal}_"))
    return bool(exporter or any(map(os.environ.get, endpoints)))


def usable(signal: str, warn: Callable[[str], None]) -> bool:
    """Return True if a signal can be sent as the environment wants it; else say why not."""
    own, common = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    name = own if own in os.environ else common
    for variable, choice in ((f"OTEL_{signal}_EXPORTER", "otlp"), (name, "http/protobuf")):
        if (value := os.environ.get(variable, "")) not in ("", choice):
            advice = f"{choice!r} would be; no {signal.lower()} are sent"
            warn(f"{variable}: {value!r} is not known here, {advice}")
            return False
    return True
