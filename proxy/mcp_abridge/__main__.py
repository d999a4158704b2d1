"""`python -m mcp_abridge`: the command, if it is not installed."""

import sys

from mcp_abridge.cli import main

sys.exit(main())
