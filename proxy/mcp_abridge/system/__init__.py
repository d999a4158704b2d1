"""The calls that differ between platforms: without it, they would stand wherever one is needed.

`from mcp_abridge.system import platform` gives the module of this platform; all have the same
names, so that a further platform is a further file. They import nothing slow: a server is started
before anything else is loaded.

posix      process groups and a guardian, signals, advisory locks, owners and modes of files
allocator  the C library's, if it is glibc
guardian   the shell that outlives a proxy on POSIX
windows    Job objects, handles, locks of byte ranges, the profile's folders
"""

import sys

if sys.platform == "win32":
    from mcp_abridge.system import windows as platform
else:
    from mcp_abridge.system import posix as platform

__all__ = ["platform"]
