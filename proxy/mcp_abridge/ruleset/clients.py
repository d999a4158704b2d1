"""A table of known MCP clients: which copy of a result the model reads, and the size limits.

Clients change, so every number is a default that an option overrides, never a promise.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.paths import matches
from mcp_abridge.document.sizes import LEAST_BOUND

Shows = Literal[
    "structured", "text", "blocks", "both", "once", "once_in_javascript", "result", "either"
]
"""The copy that the model reads if a result has both.

`structured`: structuredContent alone. `text`: the texts of the content blocks alone. `blocks`: the
same as JSON of the blocks, so that escapes count. `both`: the two together. `once`: the two, or one
if they are equal to the byte. `once_in_javascript`: the two, or one if a text is what JavaScript
writes of structuredContent (2 for 2.0). `result`: the whole result as one JSON text, with both
copies and escapes. `either`: one of the two, not known which; both must contain what the model has
to know.
"""

Need = Literal["text", "block", "object"]
"""A result that the client cannot use without help.

`text`: one without content, whose structuredContent alone the model never sees. `block`: the same,
and any text block beside it makes it visible. `object`: one whose text is JSON but no object, and
that has no structuredContent: the client refuses it.
"""


BlobType = Literal["image", "audio", "resource"]
"""The types of content blocks that hold base64."""


class Client(Struct, frozen=True):
    """The facts of one client: the copy that its model reads, its limit and its default budget.

    `name` is a case-insensitive glob over `clientInfo.name`. `budget_bytes` is the default budget
    of a response, measured on the copies that the model reads. `beyond` describes what the client
    does with a result above `limit_bytes` (None: no known limit), of which the model then reads
    `beyond_bytes` (None: that limit). A limit in characters is given as that many bytes, which is
    stricter. `limit_tokens` applies beside `limit_bytes`; `tokens_env` is the variable with the
    user's own limit in tokens. `author_bytes`: up to so many bytes, the author of a tool may raise
    the limit.
    `code_mode` identifies a call whose result goes to a script of the model: the path to a text in
    `params._meta`, and its prefix. The results of all calls do if the first of the variables
    `scripts_env` that is set is true, or in versions that match one of `scripts_versions`.
    `measured` is the version that the facts were measured with.
    `needs` are the results that it cannot use as they are.
    `base64` are the types of blocks whose base64 its model reads: other images it sees, and other
    files the client saves, or gives to the model as such.
    """

    name: str
    shows: Shows
    budget_bytes: int = 10_000
    limit_bytes: int | None = None
    beyond_bytes: int | None = None
    beyond: str | None = None
    measured: str | None = None
    limit_tokens: int | None = None
    tokens_env: str | None = None
    author_bytes: int = 0
    code_mode: tuple[tuple[str, ...], str] | None = None
    scripts_env: tuple[str, ...] = ()
    scripts_versions: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    base64: tuple[BlobType, ...] = ("audio", "resource")

    @property
    def whole_bytes(self) -> int:
        """The most bytes that one answer gives if a model asks for all of it.

        >>> [client_for(name).whole_bytes for name in ("claude-code", "copilot-cli", "new")]
        [49900, 20380, 8000]
        """
        if self.limit_bytes is None:
            return self.budget_bytes if self is UNKNOWN else _WHOLE
        return max(self.budget_bytes, min(self.limit_bytes, _WHOLE) - _SPARE)

    def cut(self, size: int) -> int:
        """Return the bytes that the client itself leaves out of a result of `size` bytes.

        >>> client_for("claude-code").cut(49_000), client_for("claude-code").cut(238_000)
        (0, 236500)
        """
        if self.limit_bytes is None or size <= self.limit_bytes:
            return 0
        return size - (self.limit_bytes if self.beyond_bytes is None else self.beyond_bytes)

    def writes_scripts(self, version: str | None, environ: Mapping[str, str]) -> bool:
        """Return True if the results of all calls go to scripts, which compute with the whole.

        >>> client_for("opencode").writes_scripts("1.18.33", {"OPENCODE_EXPERIMENTAL": "1"})
        True
        """
        values = (environ[name] for name in self.scripts_env if name in environ)
        return next(values, "").strip().lower() in _TRUE or any(
            matches(pattern, version or "") for pattern in self.scripts_versions
        )

    def within(self, environ: Mapping[str, str]) -> "Client":
        """Return the facts of a client whose user limits its tokens by a variable.

        >>> client_for("claude-code").within({"MAX_MCP_OUTPUT_TOKENS": "2000"}).budget_bytes
        4000
        """
        tokens = environ.get(self.tokens_env or "", "")
        own = tokens.isdecimal() and len(tokens) < 10 and int(tokens) * _BYTES_PER_TOKEN
        if not own or self.limit_bytes is None:
            return self
        limit = min(self.limit_bytes, max(own, LEAST_BOUND))
        least = min(self.limit_tokens or int(tokens), int(tokens))
        budget = min(self.budget_bytes, limit)
        return replace(self, limit_bytes=limit, limit_tokens=least, budget_bytes=budget)


_TRUE = frozenset(("1", "on", "true", "yes"))
_SMALL = 8_000  # the smallest known limit
_WHOLE = 50_000  # about what the clients show that people code with
_SPARE = 100  # bytes; Codex counts a head of its own
_BYTES_PER_TOKEN = 2  # of rows of numbers; Claude Code counts no result below that
_FILE = "is saved to a file; the model reads its "

_ALL: tuple[BlobType, ...] = ("image", "audio", "resource")

UNKNOWN = Client("*", "either", _SMALL, needs=("text",))
"""The row for a client that matches no other one.

An assumption: either copy may be the one shown, and the smallest known limit applies.
One is `mcp`, the Python SDK's own name: Mistral Vibe, OpenAI Agents, LangChain, Strands, CrewAI and
Microsoft's Agent Framework send it. OpenAI Agents for JavaScript sends the name of the server that
its program configures. All but Vibe and Microsoft's show nothing of a result without content.
LlamaIndex, `mcp` too, shows both copies, and so twice the budget.
"""

_COPILOT_CLI: tuple[tuple[str, Shows], ...] = (
    ("copilot-cli (via mcp-remote*", "both"),
    ("copilot-cli*", "once"),
)
# A name behind mcp-remote is "CLIENT (via mcp-remote 0.15.1)", which the trailing stars match.
CLIENTS: tuple[Client, ...] = (
    # code.claude.com/docs/en/mcp, anthropics/claude-code#79944: a warning from 10,000 tokens,
    # 25,000 at most (MAX_MCP_OUTPUT_TOKENS); a result longer than 50,000 characters goes to a
    # file; a tool raises its own bound with _meta["anthropic/maxResultSizeChars"], up to 500,000.
    # The model reads the text of error results. In Code Mode no call has a mark: the ids of those
    # of scripts are replaced by the id of the script. The variable reaches servers even if Claude
    # Code has refused that mode (behind a gateway, say), as it tells its user.
    Client(
        "claude-code*",
        "structured",
        limit_bytes=50_000,
        beyond_bytes=1_500,
        beyond="is saved to a file; the model reads at most its first 2 kB, or an error",
        measured="Claude Code 2.1.332",
        base64=(),
        limit_tokens=25_000,
        tokens_env="MAX_MCP_OUTPUT_TOKENS",
        author_bytes=500_000,
        scripts_env=("CLAUDE_CODE_EXPERIMENTAL_CODE_MODE",),
    ),
    # Claude Desktop's local servers, and the connectors of claude.ai: "about 150,000 characters"
    # (claude.com/docs/connectors/building); over 1,048,576 bytes the call fails
    # (strickvl/mcp-beeminder#2). The model reads text (anthropics/claude-code#55677); nothing is
    # known of other content.
    *(
        Client(name, "either", limit_bytes=150_000, beyond="is cut; over 1 MiB the call fails")
        for name in ("claude-ai*", "anthropic/claudeai*")
    ),
    # 10,000 tokens by the model's truncation policy, which are 48,000 bytes, 34 of them a head of
    # its own (12,000 for a model that it does not know); earlier 10,000 bytes (#7906), and 10 KiB
    # or 256 lines (#6544). structuredContent alone: openai/codex#38287. Models that write scripts
    # get the whole result there (#20260), and call ids that begin with exec-; the ids of other
    # calls are the model's.
    Client(
        "codex*",
        "structured",
        _SMALL,
        limit_bytes=48_000,
        beyond="loses its middle",
        measured="Codex 0.171.0",
        base64=("resource",),
        code_mode=(("callId",), "exec-"),
    ),
    # chat.agent.largeToolResultsToDisk.thresholdBytes is 8 KiB (microsoft/vscode#290063). Visual
    # Studio Code and its Insiders build send their product name; some releases have hyphens in
    # place of spaces.
    Client(
        "visual?studio?code*",
        "structured",
        _SMALL,
        limit_bytes=8_192,
        beyond_bytes=0,
        beyond=f"{_FILE}path",
    ),
    # Copilot CLI forwards both copies (github/copilot-cli#4515), one if they are equal, which
    # mcp-remote ends: it writes 2.0 as 2 in one of them. Earlier cut at 10 KiB (#1732), as the
    # next, which was not run.
    *(
        Client(
            name,
            shows,
            _SMALL,
            limit_bytes=20_480,
            beyond_bytes=840,
            beyond=f"{_FILE}first 500 characters",
            measured="Copilot CLI 1.0.102",
            base64=(),
        )
        for name, shows in _COPILOT_CLI
    ),
    Client(
        "github-copilot*",
        "both",
        _SMALL,
        limit_bytes=10_240,
        beyond="loses its middle without a word, or is saved to a file",
    ),
    # microsoft/copilot-intellij-feedback#2058
    Client("jetbrains-*copilot*", "both", _SMALL),
    # tools.truncateToolOutputThreshold is 40,000 characters (google-gemini/gemini-cli#18446); a
    # result with structuredContent alone reaches the model empty (#29526). Without one, it takes
    # the first text read as JSON for it, and then refuses an array, a number or a string (#27725).
    Client(
        "gemini-cli*",
        "text",
        limit_bytes=40_000,
        beyond="loses its middle and is saved to a file",
        measured="Gemini CLI 0.61.0",
        base64=(),
        needs=("text", "object"),
    ),
    # 28,000 characters; up to 0.15 25,000, and the text alone.
    Client(
        "qwen-cli-mcp-client*",
        "once_in_javascript",
        limit_bytes=28_000,
        beyond_bytes=2_500,
        beyond=f"{_FILE}beginning",
        measured="Qwen Code 0.24.4",
        base64=(),
    ),
    # 50,000 characters. The copies are equal for it if they have the same members, and the text no
    # number that JavaScript would spell in another way.
    Client(
        "kimi-code*",
        "once_in_javascript",
        limit_bytes=50_000,
        beyond_bytes=5_800,
        beyond=f"{_FILE}beginning and its end",
        measured="Kimi Code 2.1.0",
        base64=(),
    ),
    # The whole result as JSON, 8,000 characters of it. The extension's own name has another row.
    Client(
        "@cline/*",
        "result",
        7_800,
        limit_bytes=8_000,
        beyond="loses its middle",
        measured="Cline CLI 3.0.65",
        base64=_ALL,
    ),
    # GOOSE_MAX_TOOL_RESPONSE_SIZE is 200,000 characters (aaif-goose/goose#9256).
    Client("goose*", "text", limit_bytes=200_000, beyond_bytes=0, beyond=f"{_FILE}path"),
    # 50 KiB or 2,000 lines (anomalyco/opencode#35661, #32074); the text if there is any. In its
    # code mode there are no other calls of tools than those of scripts (#35185). In opencode 2,
    # which was not run, that is the default (#48108); its beta says the other two versions.
    Client(
        "opencode*",
        "text",
        limit_bytes=50_000,
        beyond_bytes=386,
        beyond=f"{_FILE}first lines, nothing of a single long one",
        measured="opencode 1.18.33",
        base64=(),
        scripts_env=("OPENCODE_EXPERIMENTAL_CODE_MODE", "OPENCODE_EXPERIMENTAL"),
        scripts_versions=("2.*", "0.0.0-*", "unknown"),
    ),
    # No limit: Continue summarises its context once that is full.
    Client("continue-cli-client*", "blocks", measured="Continue CLI 1.5.47", needs=("text",)),
    Client("ai-sdk-mcp-client*", "blocks", measured="AI SDK 7.0.173", needs=("text",)),
    Client("mcp-use*", "text", measured="mcp-use 1.7.1", needs=("text",)),
    # One name for Pydantic AI and FastMCP's client, which read structuredContent, and for Agno,
    # which reads the text.
    Client(
        "fastmcp*",
        "either",
        measured="Agno 3.1.10, FastMCP 4.2.3, Pydantic AI 2.68.0",
        needs=("text",),
    ),
    # JSON of the text block, with structuredContent as a member of it.
    Client(
        "@langchain/mcp-adapters*",
        "result",
        measured="LangChain JS 1.1.4",
        base64=(),
        needs=("block",),
    ),
    Client("google-adk*", "result", measured="Google ADK 2.13.0", base64=_ALL),
    Client("inspector-cli*", "both", _SMALL, measured="MCP Inspector CLI 2.12.0"),
    # Reported to take structuredContent (modelcontextprotocol/modelcontextprotocol#1411), and
    # later to take content alone; long results go to a file, from a size that is not documented.
    Client("cursor*", "either", _SMALL),
    # Give the model both copies (developers.openai.com/apps-sdk/reference); no limit is documented.
    *(Client(name, "both", _SMALL) for name in ("openai-mcp*", "chatgpt*")),
    # One survey read the source of the next four; they have no known limit:
    # olaservo-sandyland.static.hf.space/mcp/structured-content/client-survey.html
    *(Client(name, "text") for name in ("zed*", "cline*", "roo?code*", "@librechat/*")),
)

SHOWN_BY_ALL = min(each.limit_bytes for each in CLIENTS if each.limit_bytes is not None)
"""The bytes of a result that every client shows whole."""


@lru_cache(64)
def client_for(name: str | None) -> Client:
    """Return the row that matches a `clientInfo.name`, or UNKNOWN if none does or it is None.

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
