"""Starts a process that draws an image: a hostile one would take this one's memory and time.

Only if the extra `images` (Pillow) is installed; without it, nothing is imported or logged.
"""

import os
from importlib.util import find_spec
from time import monotonic

import msgspec
from msgspec.structs import replace

from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.blobs import Picture, drawn
from mcp_abridge.shaping.job import Box, ShapeJob, ShapeResult
from mcp_abridge.system import platform
from mcp_abridge.transports.own_process import own_python

SECONDS = 20.0
"""The most time for all images of a result."""

_START = "from mcp_abridge.transports.workers.drawing import serve; serve()"
_PASSED_ON = ("SYSTEMROOT", "LD_LIBRARY_PATH")  # of the environment, which may hold secrets
_MISSING = "parts need Pillow: `pip install 'mcp-abridge[images]'` in the proxy's environment"


def with_drawings(job: ShapeJob, result: ShapeResult) -> ShapeResult:
    """Return a result with its drawings made, if the extra is installed. Never raises."""
    if job.view is None and find_spec("PIL") is None:
        return replace(result, drawings=())
    end = monotonic() + SECONDS
    try:
        return drawn(job, result, lambda data, box: draw(data, box, end - monotonic()))
    except Exception as error:  # no memory for the answer, ...
        return pipeline.failure(job, error)


def draw(data: str, box: Box | None, seconds: float = SECONDS) -> Picture | str:
    """Return base64 made smaller, or a part of it; the reason if that fails or takes too long."""
    from subprocess import TimeoutExpired, run

    if find_spec("PIL") is None:
        return _MISSING
    if seconds <= 0:
        return f"all images together took {SECONDS:g} seconds"
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    options = {"env": environment, "capture_output": True, "timeout": seconds, **platform.DETACHED}
    request = msgspec.msgpack.encode((data, box))
    try:
        child = run(own_python(_START), input=request, check=False, **options)
    except OSError as error:
        return f"no process can be started for it: {error}"
    except TimeoutExpired:
        return f"it takes more than {seconds:.0f} seconds"
    try:
        return msgspec.msgpack.decode(child.stdout, type=Picture | str)
    except msgspec.DecodeError:
        last = child.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        return f"its process ended with code {child.returncode}: {last}"
