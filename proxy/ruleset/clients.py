"""What MCP clients do with large results: which copy the model reads, and how much of it.

The table goes by `clientInfo.name`, the only thing that a client says of itself. What it says was
read from the clients' documentation, source and issue threads, named beside each entry; clients
change, so every number is a default that an option overrides, never a promise.
"""

from functools import lru_cache
from typing import Literal

from msgspec import Struct

Shows = Literal["structured", "text", "both", "either"]
"""Which copy of a result the model reads where a result has both.

`structured`: structuredContent alone. `text`: the content blocks alone. `both`: the two together.
`either`: one of them, and nobody can say which; what the model must know stands in both.
"""


class Client(Struct, frozen=True, kw_only=True):
    """What one client does with results.

    `name` is a glob over `clientInfo.name`, letter case aside. Above `limit_bytes` the client does
    what `beyond` says (None: no bound is known); a limit that the client counts in characters
    stands here as that many bytes, which is the stricter. `budget_bytes` is what a response may
    weigh, as the model sees it, where no option says otherwise. `code_mode` is how the client marks
    a call whose result a program gets: the path to a text in `params._meta`, and how it begins.
    `source` says where the facts are from.
    """

    name: str
    shows: Shows
    limit_bytes: int | None = None
    beyond: str | None = None
    budget_bytes: int
    code_mode: tuple[tuple[str, ...], str] | None = None
    source: str

    def visible(self, structured: int, text: int) -> int:
        """Return the bytes the model reads of a result whose copies are this large (0: no copy).

        >>> client_for("codex-mcp-client").visible(300, 500), client_for("Zed").visible(300, 500)
        (300, 500)
        >>> client_for("Zed").visible(0, 500), client_for("github-copilot-developer").visible(3, 5)
        (500, 8)
        """
        match self.shows:
            case "structured":
                return structured or text
            case "text":
                return text or structured
            case "both":
                return structured + text
            case "either":
                return max(structured, text)


# Below every limit that is known, with room for the header that some clients put before a result.
_SMALL = 8_000
_ROOMY = 10_000

UNKNOWN = Client(
    name="*",
    shows="either",
    budget_bytes=_SMALL,
    source="an assumption: either copy may be the one shown, and the smallest known limit applies",
)
"""The client that no entry of the table fits."""

CLIENTS: tuple[Client, ...] = (
    # https://code.claude.com/docs/en/mcp: a warning from 10,000 tokens, 25,000 at most
    # (MAX_MCP_OUTPUT_TOKENS), and whatever is longer than 50,000 characters goes to a file;
    # a tool raises its own bound with _meta["anthropic/maxResultSizeChars"], up to 500,000.
    # Of error results it shows the text.
    Client(
        name="claude-code*",
        shows="structured",
        limit_bytes=50_000,
        beyond="is saved to a file; the model reads its first 2 kB",
        budget_bytes=_ROOMY,
        source="https://github.com/anthropics/claude-code/issues/79944",
    ),
    # Claude Desktop's local servers, and the connectors of claude.ai. The documents say "about
    # 150,000 characters"; over 1,048,576 bytes the call fails (strickvl/mcp-beeminder#2). Text is
    # read (anthropics/claude-code#55677); nothing says what else is.
    Client(
        name="claude-ai*",
        shows="either",
        limit_bytes=150_000,
        beyond="is cut; over 1 MiB the call fails",
        budget_bytes=_ROOMY,
        source="https://claude.com/docs/connectors/building",
    ),
    Client(
        name="anthropic/claudeai*",
        shows="either",
        limit_bytes=150_000,
        beyond="is cut; over 1 MiB the call fails",
        budget_bytes=_ROOMY,
        source="https://claude.com/docs/connectors/building",
    ),
    # 10,000 bytes by the model's truncation policy (#7906), earlier 10 KiB or 256 lines (#6544).
    # structuredContent alone: openai/codex#38287. Models that write scripts get the whole result
    # there (#20260), and call ids that begin with exec-; the ids of other calls are the model's.
    Client(
        name="codex*",
        shows="structured",
        limit_bytes=10_000,
        beyond="loses its middle",
        budget_bytes=_SMALL,
        code_mode=(("callId",), "exec-"),
        source="https://github.com/openai/codex/issues/7906",
    ),
    # chat.agent.largeToolResultsToDisk.thresholdBytes is 8 KiB. Visual Studio Code and its
    # Insiders build say their product name; some releases put hyphens for the spaces.
    Client(
        name="visual?studio?code*",
        shows="structured",
        limit_bytes=8_192,
        beyond="is saved to a file; the model reads its path",
        budget_bytes=_SMALL,
        source="https://github.com/microsoft/vscode/issues/290063",
    ),
    # Copilot CLI (its name: github/copilot-cli#1268) forwards both copies (#4515). Cut at 10 KiB
    # without a word (#1732); later releases save what is over 20 kB to a file.
    Client(
        name="github-copilot*",
        shows="both",
        limit_bytes=10_240,
        beyond="loses its middle without a word, or is saved to a file",
        budget_bytes=_SMALL,
        source="https://github.com/github/copilot-cli/issues/1732",
    ),
    Client(
        name="jetbrains-*copilot*",
        shows="both",
        budget_bytes=_SMALL,
        source="https://github.com/microsoft/copilot-intellij-feedback/issues/2058",
    ),
    # tools.truncateToolOutputThreshold is 40,000 characters (google-gemini/gemini-cli#18446); a
    # result with structuredContent alone reaches the model empty (#29526). The server's name
    # follows the client's.
    Client(
        name="gemini-cli*",
        shows="text",
        limit_bytes=40_000,
        beyond="loses its middle and is saved to a file",
        budget_bytes=_ROOMY,
        source="https://github.com/google-gemini/gemini-cli/pull/18446",
    ),
    # GOOSE_MAX_TOOL_RESPONSE_SIZE is 200,000 characters.
    Client(
        name="goose*",
        shows="text",
        limit_bytes=200_000,
        beyond="is saved to a file; the model reads its path",
        budget_bytes=_ROOMY,
        source="https://github.com/aaif-goose/goose/pull/9256",
    ),
    # 50 KB or 2,000 lines (anomalyco/opencode#35661). Since #32074 it prefers structuredContent;
    # later source takes the text where there is any.
    Client(
        name="opencode*",
        shows="either",
        limit_bytes=50_000,
        beyond="is saved to a file; the model reads a part",
        budget_bytes=_ROOMY,
        source="https://github.com/anomalyco/opencode/pull/32074",
    ),
    # Reported to take structuredContent (modelcontextprotocol/modelcontextprotocol#1411), and
    # later to take content alone; long results go to a file, from a size that is not documented.
    Client(
        name="cursor*",
        shows="either",
        budget_bytes=_SMALL,
        source="https://github.com/modelcontextprotocol/modelcontextprotocol/issues/1411",
    ),
    # Reported to give the model both copies; no limit is documented.
    Client(
        name="openai-mcp*",
        shows="both",
        budget_bytes=_SMALL,
        source="https://developers.openai.com/apps-sdk/reference",
    ),
    Client(
        name="chatgpt*",
        shows="both",
        budget_bytes=_SMALL,
        source="https://developers.openai.com/apps-sdk/reference",
    ),
    # The next four were read in source by one survey; none of them has a known limit.
    Client(
        name="zed*",
        shows="text",
        budget_bytes=_ROOMY,
        source="https://olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html",
    ),
    Client(
        name="cline*",
        shows="text",
        budget_bytes=_ROOMY,
        source="https://olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html",
    ),
    Client(
        name="roo?code*",
        shows="text",
        budget_bytes=_ROOMY,
        source="https://olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html",
    ),
    Client(
        name="@librechat/*",
        shows="text",
        budget_bytes=_ROOMY,
        source="https://olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html",
    ),
)


@lru_cache(64)
def client_for(name: str | None) -> Client:
    """Return the entry that fits a `clientInfo.name`; UNKNOWN where none does or none was given.

    >>> client_for("Visual Studio Code - Insiders").budget_bytes
    8000
    >>> client_for("something new").shows
    'either'
    """
    if name is None:
        return UNKNOWN
    # Only worth its import once a client has said its name.
    from fnmatch import fnmatchcase

    lowered = name.lower()
    return next((each for each in CLIENTS if fnmatchcase(lowered, each.name)), UNKNOWN)
