"""A table of known MCP clients: which copy of a result the model reads, and the size limits.

Entries match `clientInfo.name`, a client's only identification. The facts come from the clients'
documentation, source and issue threads, cited at each entry. Clients change, so every number is a
default that an option overrides, never a promise.
"""

from functools import lru_cache
from typing import Literal

from msgspec import Struct

Shows = Literal["structured", "text", "both", "either"]
"""The copy that the model reads if a result has both.

`structured`: structuredContent alone. `text`: the content blocks alone. `both`: the two together.
`either`: one of the two, not known which; both must contain what the model has to know.
"""


class Client(Struct, frozen=True, kw_only=True):
    """The facts of one client: the copy that its model reads, its limit and its default budget.

    `name` is a case-insensitive glob over `clientInfo.name`. `beyond` describes what the client
    does with a result above `limit_bytes` (None: no known limit), `beyond_bytes` is how much of it
    the model then reads. A limit that the client counts in
    characters is given as that many bytes, which is stricter. `budget_bytes` is the default budget
    of a response, measured on the copies that the model reads. `code_mode` identifies a call whose
    result goes to a program: the path to a text in `params._meta`, and the prefix of that text.
    `source` is the URL or the reason behind the facts.
    """

    name: str
    shows: Shows
    limit_bytes: int | None = None
    beyond: str | None = None
    beyond_bytes: int = 0
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

    def cut(self, size: int) -> int:
        """Return the bytes that the client itself leaves out of a result of `size` bytes.

        >>> client_for("claude-code").cut(49_000), client_for("claude-code").cut(238_000)
        (0, 236500)
        """
        if self.limit_bytes is None or size <= self.limit_bytes:
            return 0
        return size - self.beyond_bytes


# Below every known limit, with room for the header that some clients put before a result.
_SMALL = 8_000
_ROOMY = 10_000
_SURVEY = "https://olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html"

UNKNOWN = Client(
    name="*",
    shows="either",
    budget_bytes=_SMALL,
    source="an assumption: either copy may be the one shown, and the smallest known limit applies",
)
"""The entry for a client that matches no other entry."""

CLIENTS: tuple[Client, ...] = (
    # https://code.claude.com/docs/en/mcp: a warning from 10,000 tokens, 25,000 at most
    # (MAX_MCP_OUTPUT_TOKENS); a result longer than 50,000 characters goes to a file;
    # a tool raises its own bound with _meta["anthropic/maxResultSizeChars"], up to 500,000.
    # The model reads the text of error results.
    Client(
        name="claude-code*",
        shows="structured",
        limit_bytes=50_000,
        beyond="is saved to a file; the model reads at most its first 2 kB, or an error",
        beyond_bytes=1_500,
        budget_bytes=_ROOMY,
        source="https://github.com/anthropics/claude-code/issues/79944",
    ),
    # Claude Desktop's local servers, and the connectors of claude.ai. The documentation gives
    # "about 150,000 characters"; over 1,048,576 bytes the call fails (strickvl/mcp-beeminder#2).
    # The model reads text (anthropics/claude-code#55677); nothing is known of other content.
    *(
        Client(
            name=name,
            shows="either",
            limit_bytes=150_000,
            beyond="is cut; over 1 MiB the call fails",
            beyond_bytes=150_000,
            budget_bytes=_ROOMY,
            source="https://claude.com/docs/connectors/building",
        )
        for name in ("claude-ai*", "anthropic/claudeai*")
    ),
    # 10,000 tokens by the model's truncation policy, which are 48,000 bytes (12,000 for a model
    # that it does not know); earlier 10,000 bytes (#7906), and 10 KiB or 256 lines (#6544).
    # structuredContent alone: openai/codex#38287. Models that write scripts get the whole result
    # there (#20260), and call ids that begin with exec-; the ids of other calls are the model's.
    Client(
        name="codex*",
        shows="structured",
        limit_bytes=48_000,
        beyond="loses its middle",
        beyond_bytes=48_000,
        budget_bytes=_SMALL,
        code_mode=(("callId",), "exec-"),
        source="https://github.com/openai/codex/issues/7906",
    ),
    # chat.agent.largeToolResultsToDisk.thresholdBytes is 8 KiB. Visual Studio Code and its
    # Insiders build send their product name; some releases have hyphens in place of spaces.
    Client(
        name="visual?studio?code*",
        shows="structured",
        limit_bytes=8_192,
        beyond="is saved to a file; the model reads its path",
        budget_bytes=_SMALL,
        source="https://github.com/microsoft/vscode/issues/290063",
    ),
    # Copilot CLI (its name: github/copilot-cli#1268) forwards both copies (#4515). Cut at 10 KiB
    # without notice (#1732); 1.0.102 saves results over 20 KiB to a file, and says copilot-cli.
    Client(
        name="copilot-cli*",
        shows="both",
        limit_bytes=20_480,
        beyond="is saved to a file; the model reads its first 500 characters",
        beyond_bytes=840,
        budget_bytes=_SMALL,
        source="https://github.com/github/copilot-cli/issues/1732",
    ),
    Client(
        name="github-copilot*",
        shows="both",
        limit_bytes=10_240,
        beyond="loses its middle without a word, or is saved to a file",
        beyond_bytes=10_240,
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
        beyond_bytes=40_000,
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
    # later source takes the text if there is any.
    Client(
        name="opencode*",
        shows="either",
        limit_bytes=50_000,
        beyond="is saved to a file; the model reads its first lines, nothing of a single long one",
        beyond_bytes=386,
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
    *(
        Client(
            name=name,
            shows="both",
            budget_bytes=_SMALL,
            source="https://developers.openai.com/apps-sdk/reference",
        )
        for name in ("openai-mcp*", "chatgpt*")
    ),
    # One survey read the source of the next four; they have no known limit.
    *(
        Client(name=name, shows="text", budget_bytes=_ROOMY, source=_SURVEY)
        for name in ("zed*", "cline*", "roo?code*", "@librechat/*")
    ),
)


@lru_cache(64)
def client_for(name: str | None) -> Client:
    """Return the entry that matches a `clientInfo.name`, or UNKNOWN if none does or it is None.

    >>> client_for("Visual Studio Code - Insiders").budget_bytes
    8000
    >>> client_for("something new").shows
    'either'
    """
    if name is None:
        return UNKNOWN
    # Imported late: not needed until a client sends its name.
    from fnmatch import fnmatchcase

    lowered = name.lower()
    return next((each for each in CLIENTS if fnmatchcase(lowered, each.name)), UNKNOWN)
