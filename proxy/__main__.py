"""`python -m proxy`: the command, if it is not installed."""

import sys

from proxy.cli import main

sys.exit(main())
