"""`completion`: without it, each verb and flag must be typed in full."""

import argparse

SHELLS = ("bash", "zsh", "fish")
_PATHS = ("DIR", "F", "FILE", "PATH", "R")  # arguments that name files

_EPILOG = """\
bash: mcp-abridge completion bash > ~/.local/share/bash-completion/completions/mcp-abridge
zsh:  mcp-abridge completion zsh > "${fpath[1]}/_mcp-abridge"
fish: mcp-abridge completion fish > ~/.config/fish/completions/mcp-abridge.fish"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `completion`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(arguments: argparse.Namespace) -> int:
    """Print the script; return 0."""
    import shtab

    from mcp_abridge.cli import whole_parsers
    from mcp_abridge.cli.terminal import put

    parsers = whole_parsers()
    for parser in parsers:
        for action in parser._actions:
            if action.metavar in _PATHS:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    put(f"{shtab.complete(parsers[0], arguments.shell)}\n")
    return 0
