"""The plain server: the whole result, or what some clients leave of it."""

from tests.answers.arm import Arm, Call, Look, Result, Steps, visible_text
from tests.answers.question import Question

_ROW = 8000
"""Characters before a part of a file in which a row may begin that ends in the part."""


class Direct(Arm):
    """A framework that shows the model all of a result."""

    name = "direct"
    fresh = False

    def steps(self, question: Question) -> Steps:
        yield Call(question.tool)


class FileClient(Direct):
    """A client that writes long results to a file, which the model then reads in parts.

    `limit` is in characters; so long are the parts, too. `begins` are those shown at once.
    """

    limit: int
    begins: int

    def show(self, result: Result) -> str:
        text = visible_text(result)
        if len(text) <= self.limit:
            return text
        notice = f"The result ({len(text)} characters) is too long. It was saved to /tmp/result."
        return f"{notice}\n{text[: self.begins]}"

    def steps(self, question: Question) -> Steps:
        reply = yield Call(question.tool)
        text = visible_text(reply.result)
        if len(text) > self.limit:
            for start in range(0, len(text), self.limit):
                end = start + self.limit
                earlier = text[:start] if end >= len(text) else text[max(start - _ROW, 0) : start]
                yield Look(text[start:end], earlier)


class ClaudeCode(FileClient):
    """Over 50,000 characters, 1.5 kB are shown, and a file that is read in parts of that size."""

    name, limit, begins = "direct, Claude Code", 50_000, 1500


class VisualStudioCode(FileClient):
    """Over 8 KiB, the path of a file is shown; assumed is that it is read in parts of 8 KiB."""

    name, limit, begins = "direct, VS Code", 8192, 0


class Codex(Direct):
    """Over 48,000 bytes the middle is cut out, and nothing shows it again."""

    name, limit = "direct, Codex", 48_000

    def show(self, result: Result) -> str:
        text = visible_text(result).encode()
        if len(text) <= self.limit:
            return text.decode()
        half = self.limit // 2
        middle = b"...%d tokens truncated..." % ((len(text) - self.limit) // 4)
        return (text[:half] + middle + text[-half:]).decode(errors="replace")
