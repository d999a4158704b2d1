"""`python -m tests.answers.picture`: without it, the picture in README would be drawn by hand.

It asks one question of `make answers` twice, directly and through the proxy, and draws what the
model reads: examples/answer.svg.
"""

from pathlib import Path
from xml.sax.saxutils import escape

from mcp_abridge.document.tokens import tokens
from msgspec import Struct

from tests.answers.arm import Arm, Call, Look, Reply
from tests.answers.direct import Direct
from tests.answers.ours import LookThenView
from tests.answers.question import Question
from tests.answers.questions import questions
from tests.answers.session import open_session

FILE = Path(__file__).resolve().parents[2] / "examples" / "answer.svg"
QUESTION = "list_issues/security"
_WIDTH, _LINE, _MARGIN, _COLUMNS = 860, 19, 24, 96
_STYLE = """
  svg { --page: #ffffff; --ink: #1f2328; --dim: #656d76; --long: #cf7b2e; --short: #1a7f64; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #0d1117; --ink: #e6edf3; --dim: #8d96a0; --long: #e39a52; --short: #3fb68b; }
  }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--dim); }
  .title { font-weight: 600; fill: var(--ink); }
  .call { fill: var(--ink); }
"""


class Step(Struct):
    """A call as a model writes it, and what the model reads then."""

    call: str
    answer: str

    @property
    def size(self) -> int:
        return len(self.answer.encode())


def steps(arm: Arm, question: Question) -> list[Step]:
    """Return the calls until the answer to the question stands in what was read."""
    calls: list[Step] = []

    def note(step: Call | Look, reply: Reply) -> None:
        assert isinstance(step, Call)
        words = ", ".join(f'{name}="{value}"' for name, value in step.arguments.items())
        calls.append(Step(f"{step.tool}({words})", reply.text))

    with open_session(arm) as session:
        assert not session.ask(question, note).never
    return calls


def drawing() -> str:
    [question] = [each for each in questions() if each.name == QUESTION]
    direct, ours = steps(Direct(), question), steps(LookThenView(), question)
    read = [sum(step.size for step in each) for each in (direct, ours)]
    words = f"“{question.text}” The answer: {question.answer}."
    elements = [_text(0, words, "title")]
    row = 1.6
    for name, color, calls, total in (
        ("directly", "long", direct, read[0]),
        ("through mcp-abridge", "short", ours, read[1]),
    ):
        elements.append(_text(row, f"{name}: the model reads {total:,} bytes", "title"))
        width = (_WIDTH - 2 * _MARGIN) * total / max(read)
        elements.append(
            f'<rect x="{_MARGIN}" y="{_y(row) + 8:g}" width="{width:.0f}" height="9" rx="2"'
            f' fill="var(--{color})"/>'
        )
        row += 2.1
        for step in calls:
            size = f"{step.size:,} bytes, about {tokens(step.answer):,} tokens"
            elements.append(_text(row, f"{step.call}  → {size}", "call"))
            lines = _lines(" ".join(step.answer.split()))
            elements += [_text(row + 1 + n, line) for n, line in enumerate(lines)]
            row += 1.4 + len(lines)
        row += 0.5
    height = _y(row) - 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:g}"'
        f' viewBox="0 0 {_WIDTH} {height:g}" role="img">\n<title>{escape(words)} Directly the model'
        f" reads {read[0]:,} bytes, through mcp-abridge {read[1]:,}.</title>\n<style>{_STYLE}"
        f'</style>\n<rect width="100%" height="100%" rx="8" fill="var(--page)"/>\n'
        + "\n".join(elements)
        + "\n</svg>\n"
    )


def _lines(text: str) -> list[str]:
    if len(text) <= _COLUMNS:
        return [text]
    if "_abridged" not in text:
        return [text[: _COLUMNS - 2] + " …"]
    end = text[text.index('"_abridged"') :]
    return [
        text[: _COLUMNS - 2] + " …",
        *(end[at : at + _COLUMNS] for at in range(0, min(len(end), 3 * _COLUMNS), _COLUMNS)),
        "…" + end[-_COLUMNS + 1 :],
    ]


def _y(row: float) -> float:
    return 32 + row * _LINE


def _text(row: float, text: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{_MARGIN}" y="{_y(row):g}"{kind} xml:space="preserve">{escape(text)}</text>'


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes")
