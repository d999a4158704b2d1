"""The questions on texts."""

from tests.answers import texts as t
from tests.answers.question import Alone, Question, Row, question


def _ask(
    name: str,
    text: str,
    *rows: Row,
    views: str | tuple[str, ...],
    word: str,
    pattern: str = "",
    count: bool = False,
) -> Question:
    """Return a question whose evidence are places in the text; or their number, with `count`."""
    number = str(len(rows))
    evidence = ((Alone((number,)),), rows) if count else (rows,)
    answer = number if count else ", ".join(rows[0].answer)
    return question("texts", name, text, answer, *evidence, views=views, word=word, pattern=pattern)


def _after(text: str, before: str, lines: int = 0) -> str:
    """Return the line so many lines after the one with a text."""
    listed = text.split("\n")
    [position] = [number for number, line in enumerate(listed) if before in line]
    return listed[position + lines]


def texts() -> list[Question]:
    commit = _after(t.history(), "Fix the race", -3).removeprefix("Commit: ")
    author = _after(t.history(), "Fix the race", -2).removeprefix("Author: ").partition(" ")[0]
    button = _after(t.snapshot(), "Delete this workspace").split()[0]
    field = t.snapshot().split("\n")[3 + 5 * 120 + 1 + 3].split('"')
    errors = [line for line in t.app_log().split("\n") if " ERROR " in line]
    grep = "grep('(?i)error|fail')"
    return [
        _ask(
            "build_log/cause",
            "Which file and line does the build fail at?",
            Row(("crates/pager/src/window.rs:418",)),
            views="tail(20)",
            pattern="^error",
            word="error",
        ),
        _ask(
            "build_log/toolchain",
            "Which version of rustc was used?",
            Row(("1.89.3",), ("rustc",)),
            views="grep('rustc')",
            word="rustc",
        ),
        _ask(
            "deploy_log/cause",
            "Why was a migration rolled back?",
            Row(("permission denied for schema billing_eu",)),
            views="grep('ERROR')",
            pattern="ERROR",
            word="rolled back",
        ),
        _ask(
            "deploy_log/role",
            "As which role was 0042_split_tenants.sql applied?",
            Row(("deployer",), ("0042_split_tenants.sql",)),
            views="grep('0042_split_tenants')",
            pattern="0042_split_tenants",
            word="0042_split_tenants.sql",
        ),
        _ask(
            "read_handbook/retention",
            "For how many days are audit logs kept?",
            Row(("400 days",), ("Audit logs",)),
            views="grep('(?i)audit logs')",
            pattern="[Aa]udit logs",
            word="audit logs",
        ),
        _ask(
            "read_handbook/swap",
            "How long ahead are swaps of on-call duty announced?",
            Row(("36 hours",)),
            views="grep('(?i)on-call duty')",
            word="on-call",
        ),
        _ask(
            "read_handbook/chapter",
            "What is the title of chapter 11?",
            Row((_after(t.handbook(), "## 11 ")[3:],)),
            views="grep('^## 11 ')",
            pattern="^## 11 ",
            word="11",
        ),
        _ask(
            "get_page/price",
            "What does the Team plan cost?",
            Row(("34.50",), ("Team plan",)),
            views="grep('Team plan')",
            word="Team plan",
        ),
        _ask(
            "get_page/changed",
            "When were prices last changed?",
            Row(("14 March 2026",)),
            views="grep('last changed')",
            word="last changed",
        ),
        _ask(
            "read_code/default",
            "What is the default of max_backoff in retry_with_jitter?",
            Row(("max_backoff=45",), ("retry_with_jitter",)),
            views="grep('def retry_with_jitter')",
            pattern="def retry_with_jitter",
            word="retry_with_jitter",
        ),
        _ask(
            "read_code/rotate",
            "Which exception does VaultClient.rotate raise?",
            Row(("KeyPinnedError",), ("rotate",), near=200),
            views="grep('def rotate', 4)",
            pattern="def rotate",
            word="rotate",
        ),
        _ask(
            "git_diff/timeout",
            "What is REQUEST_TIMEOUT set to?",
            Row(("125",), ("REQUEST_TIMEOUT",)),
            views="grep('REQUEST_TIMEOUT')",
            word="REQUEST_TIMEOUT",
        ),
        _ask(
            "git_diff/removed",
            "Which file loses legacy_merge?",
            Row(("src/merge/three_way.py",), ("legacy_merge",), near=1200),
            views="grep('legacy_merge|three_way')",
            pattern="legacy_merge|^diff --git",
            word="legacy_merge",
        ),
        _ask(
            "git_log/race",
            "Which commit fixes the race in the refresh of tokens?",
            Row((commit,), ("Fix the race",), near=250),
            views="grep('Fix the race', 3)",
            pattern="Fix the race",
            word="refresh of tokens",
        ),
        _ask(
            "git_log/author",
            f"Who is the author of commit {commit}?",
            Row((author,), (commit,), near=120),
            views=f"grep('{commit}', 1)",
            word=commit,
        ),
        _ask(
            "migrate/stopped",
            "After how many tenants did the migration stop?",
            Row(("318 of 1204",)),
            views="tail(5)",
            pattern="RuntimeError",
            word="tenants",
        ),
        _ask(
            "migrate/cause",
            "Which key was a duplicate?",
            Row(("(slug)=(north-harbour)",)),
            # The first answer of a call that fails shows the error, whatever the view.
            views=("grep('^[a-z.]*Error|Violation|^DETAIL')",) * 2,
            pattern="^[A-Za-z.]+(Error|Violation)|^DETAIL",
            word="duplicate",
        ),
        _ask(
            "take_snapshot/button",
            "What is the uid of the button that deletes the workspace?",
            Row((button,), ("Delete this workspace",)),
            views="grep('Delete this')",
            pattern="Delete",
            word="delete",
        ),
        _ask(
            "take_snapshot/value",
            f"What is the value of the field {field[1]}?",
            Row((f'value="{field[3]}"',), (field[1],)),
            views=f"grep('{field[1]}')",
            word=field[1],
        ),
        _ask(
            "read_file/first",
            "Whose certificate is the first that is not trusted?",
            Row(("node-67",), ("certificate",)),
            views=grep,
            word="certificate",
        ),
        _ask(
            "read_file/errors",
            "How many lines are errors?",
            *(Row((line.split()[5],), ("ERROR",)) for line in errors),
            count=True,
            views="content | grep(' ERROR ')",
            pattern=" ERROR ",
            word="ERROR",
        ),
    ]
