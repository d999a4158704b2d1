"""Commands and URLs of configurations for people to read: without it, they would show secrets.

A secret has no form of its own, so only what is known to be harmless stays.
"""

import re
from collections.abc import Iterator, Sequence

MASK = "***"

# All of a text, of whatever form.
_URL = re.compile(r"([A-Za-z][\w+.-]*://)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_TEMPLATE = r"\$?\{[\w:]+\}"
_HOST = re.compile(rf"(?:(?:[\w.-]|{_TEMPLATE})*|\[[\da-fA-F:.]*\])(?::(?:\d{{0,5}}|{_TEMPLATE}))?")
_SEGMENT = re.compile(r"[a-z]{0,3}|v?\d{1,3}|servers?|messages?|stream|http|public|remote|tools")

_FLAG = re.compile(r"-[A-Za-z]{1,3}|--[A-Za-z]{1,20}(?:[-_.][A-Za-z0-9]{1,15})*")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_PATH = re.compile(r"(?:~|\.{1,2}|\$\{\w+\}|[A-Za-z]:)?[/\\][\w.@/\\-]*")
_PROGRAM = re.compile(r"(?!-)[\w.@:/\\~${}^-]+")
_NUMBER = re.compile(r"\d{1,5}")
# After these, another program, package, image or script is named.
_LAUNCHERS = {
    *("npx", "uvx", "bunx", "npm", "pnpm", "yarn", "bun", "uv", "pipx", "docker", "podman", "node"),
    *("deno", "python", "python3", "tsx", "env", "cmd", "run", "exec", "dlx", "x", "tool"),
    *("mcp-abridge", "--", "-m", "/c"),
}
_SWITCHES = {"-y", "--yes", "-q", "--quiet", "-i", "-t", "-it", "-u", "--rm", "--init", "--offline"}
_HARMLESS_OPTIONS = {
    *("--rules", "--from", "--with", "--package", "--directory", "--transport", "--port"),
}
_OPTIONS_WITH_VALUE = {
    *_HARMLESS_OPTIONS,
    *("--python", "--name", "--network", "--volume", "--mount", "--env-file"),
}
WORDS = {
    *("stdio", "http", "sse", "local", "remote", "serve", "server", "start", "mcp", "true"),
    *("false", "-", "--"),
}
"""Words that are never secret."""


def masked_url(text: str) -> str:
    """Return a URL without what may be secret: all but scheme, host, and harmless path.

    >>> masked_url("https://user:word@example.org:8443/s/hunter2/mcp?code=1#x")
    'https://***@example.org:8443/s/***/mcp?***#***'
    """
    match = _URL.fullmatch(text)
    scheme, server, path, query, fragment = match.groups("") if match else ("", "", text, "", "")
    user, at, host = server.rpartition("@")
    # What has neither scheme nor port may be no URL.
    has_host = _HOST.fullmatch(host) and (scheme or ":" in host or not host)
    segments = (each if _SEGMENT.fullmatch(each) else MASK for each in path.split("/"))
    return "".join(
        (
            scheme,
            MASK + at if user or at else "",
            host if has_host else MASK,
            "/".join(segments),
            f"?{MASK}" if query else "",
            f"#{MASK}" if fragment else "",
        )
    )


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command; the values of its options, for one, are masked.

    >>> masked_words(["npx", "-y", "@x/db@1.2", "--key=v", "-p", "v", "--port", "80", "/data", "v"])
    ['npx', '-y', '@x/db@1.2', '--key=***', '-p', '***', '--port', '80', '/data', '***']
    >>> masked_words(["docker", "run", "--rm", "-e", "K=v", "io/image:1", "https://a/s/V?k=v"])
    ['docker', 'run', '--rm', '-e', 'K=***', 'io/image:1', 'https://a/s/***?***']
    """
    return list(_masked(words))


def _masked(words: Sequence[str]) -> Iterator[str]:
    option, launches = "", True
    for word in words:
        flag, equals, value = word.partition("=")
        name = re.split(r"[/\\]", word)[-1].removesuffix(".exe")
        launcher = launches and "://" not in word and bool({word, name} & _LAUNCHERS)
        if _FLAG.fullmatch(flag) and not launcher:
            yield f"{flag}={_value(value, flag)}" if equals else word
            option = "" if equals or word in _SWITCHES else word
        elif _VARIABLE.fullmatch(flag) and option in ("-e", "--env"):
            yield f"{flag}={MASK}" if equals else MASK
            option = ""
        elif equals and _VARIABLE.fullmatch(flag) and launches and not option:
            yield f"{flag}={MASK}"
        elif option and word not in ("--", "-m"):
            yield _value(word, option)
            # After an option that takes no value, this was the program.
            launches = launches and option in _OPTIONS_WITH_VALUE
            option = ""
        elif launcher:
            yield word
            option = ""
        elif launches and "://" not in word:
            # A whole line is nobody's program.
            start, blank, _ = word.partition(" ")
            yield (start if _PROGRAM.fullmatch(start) else MASK) + f" {MASK}" * bool(blank)
            launches = False
        else:
            yield _value(word)
            launches = False


def _value(word: str, option: str = "") -> str:
    if "://" in word:
        return masked_url(word) if re.match(r"[A-Za-z][\w+.-]*://", word) else MASK
    alone = not option and (_NUMBER.fullmatch(word) or _PATH.fullmatch(word))
    return word if alone or word in WORDS or option in _HARMLESS_OPTIONS else MASK
