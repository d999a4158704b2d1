"""A bookkeeping server as found: closing a month answers with every order that it booked.

What it answers depends on how often it was called, so pages that came from different runs would
not fit together.
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)


class Agreement(BaseModel):
    """What the user is asked for."""

    agreed: bool


def serve(orders: int, log: Path | None) -> MCPServer:
    """Return the server; a month has so many orders."""
    server = MCPServer("bookkeeping", version="1.4.0", log_level="WARNING")
    runs = itertools.count(1)

    def called(tool: str, **arguments: Any) -> None:
        if log is not None:
            with log.open("a") as lines:
                lines.write(json.dumps({"tool": tool, "arguments": arguments}) + "\n")

    @server.tool()
    async def close_month(month: str) -> dict[str, Any]:
        """Book every open order of a month, and say which they were."""
        called("close_month", month=month)
        run = next(runs)
        booked = [
            {"id": f"{month}-{n:05}", "booking": f"{run}/{n}", "cents": n * 37 % 9901}
            for n in range(orders)
        ]
        return {"month": month, "run": run, "booked": booked}

    @server.tool(annotations=READS)
    async def get_order(id: str) -> dict[str, Any]:
        """Return one order."""
        called("get_order", id=id)
        return {"id": id, "state": "open"}

    @server.tool()
    async def reopen_month(month: str, context: Context[Any, Any]) -> str:
        """Open a month again, once the user has agreed."""
        called("reopen_month", month=month)
        answer = await context.elicit(f"Open {month} again?", Agreement)
        agreed = answer.action == "accept" and answer.data.agreed
        return f"{month} is open" if agreed else f"{month} stays closed"

    return server


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    add = options.add_argument
    add("--orders", type=int, default=2000, metavar="N", help="orders of a month (default 2000)")
    add("--log", type=Path, metavar="FILE", help="append a JSON line per call")
    add("--host", default="127.0.0.1", help="where it listens (default 127.0.0.1)")
    add("--port", type=int, default=3000, help="(default 3000)")
    chosen = options.parse_args()
    # Behind the sidecar, which has checked Host and Origin, it is asked by any name.
    anyone = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    serve(chosen.orders, chosen.log).run(
        "streamable-http", host=chosen.host, port=chosen.port, transport_security=anyone
    )


if __name__ == "__main__":
    main()
