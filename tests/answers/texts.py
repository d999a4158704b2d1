"""Results that are texts: logs, pages, code, diffs, a traceback."""

from functools import cache

from tests.answers.dice import Dice, clock


def _log(seed: str, count: int) -> list[str]:
    dice = Dice(seed)
    levels = ("INFO", "INFO", "INFO", "DEBUG", "WARN")
    return [
        f"{clock(2 * number)} {dice.pick(levels):5} [{dice.word()}-{dice.below(20)}]"
        f" {dice.words(5 + dice.below(8))}"
        for number in range(count)
    ]


@cache
def build_log() -> str:
    """Return 2,500 lines of a build that fails at the end."""
    lines = _log("build", 2488)
    lines[40] = "Toolchain: rustc 1.89.3, linker mold 2.40"
    return "\n".join(
        [
            *lines,
            "error[E0308]: mismatched types",
            "  --> crates/pager/src/window.rs:418:27",
            "    |",
            "418 |         let offset: u32 = self.cursor.position();",
            "    |                     ---   ^^^^^^^^^^^^^^^^^^^^^^ expected `u32`, found `usize`",
            "    |                     |",
            "    |                     expected due to this",
            "",
            "error: could not compile `pager` (lib) due to 1 previous error",
            "warning: build failed, waiting for other jobs to finish...",
            "make: *** [Makefile:57: release] Error 101",
            "Process exited with status 2 after 00:41:13",
        ]
    )


@cache
def deploy_log() -> str:
    """Return 2,500 lines of a run that goes on after a failure in its middle."""
    lines = _log("deploy", 2500)
    lines[1310] = (
        f"{clock(2620)} INFO  [migrate-3] applying 0042_split_tenants.sql as role deployer"
    )
    lines[1312] = f"{clock(2624)} ERROR [migrate-3] permission denied for schema billing_eu"
    lines[1313] = f"{clock(2626)} ERROR [migrate-3] 0042_split_tenants.sql rolled back"
    lines[2499] = f"{clock(4998)} INFO  [deploy-1] finished with 1 migration left out"
    return "\n".join(lines)


@cache
def handbook() -> str:
    """Return a page of Markdown with 12 chapters of six sections."""
    dice = Dice("handbook")
    facts = {
        (7, 3): "Audit logs are kept for 400 days, then moved to cold storage.",
        (9, 5): "Swaps of on-call duty are announced 36 hours ahead.",
    }
    names = {(7, 3): "Retention of audit logs", (9, 5): "Swapping on-call duty"}
    parts = ["# Operations handbook", dice.text(3)]
    for chapter in range(1, 13):
        parts += [f"## {chapter} {dice.words(2).capitalize()}", dice.text(3)]
        for section in range(1, 7):
            name = names.get((chapter, section), dice.words(3).capitalize())
            parts += [f"### {chapter}.{section} {name}", dice.text(5)]
            parts += [facts.get((chapter, section), dice.sentence()), dice.text(5)]
    return "\n\n".join(parts) + "\n"


@cache
def page() -> str:
    dice = Dice("page")
    plans = ("Solo", "Team", "Campus", "Enterprise")
    prices = dict(zip(plans, ("9.00", "34.50", "120.00", "410.00"), strict=True))
    links = "".join(
        f'<li><a href="/{dice.word()}/{n}">{dice.words(2)}</a></li>' for n in range(300)
    )
    sections = "\n".join(
        f"<section id=s{n}><h2>{dice.words(3).capitalize()}</h2>"
        + "".join(f'<p class="lead">{dice.text(4)}</p>' for _ in range(2))
        + "</section>"
        for n in range(60)
    )
    table = "\n".join(
        f'<tr class="row"><td>{plan} plan</td><td data-currency="EUR">{price}</td></tr>'
        for plan, price in prices.items()
    )
    return (
        "<!doctype html><html lang=en><head><title>Plans and prices</title>"
        f"<script>{'window.q=window.q||[];' * 200}</script></head><body>"
        f"<nav><ul>{links}</ul></nav>\n"
        f"<main>{sections}\n<h2>Prices</h2>\n<table>\n{table}\n</table>\n"
        "<p>Prices were last changed on 14 March 2026.</p>\n</main></body></html>\n"
    )


@cache
def code() -> str:
    dice = Dice("code")
    lines = ['"""The client of the vault."""', "", "import logging", ""]
    for number in range(120):
        name = f"{dice.word()}_{dice.word()}_{number}"
        default = dice.below(100)
        if number == 77:
            name, default = "retry_with_jitter", 45
        lines += [
            f"def {name}({dice.word()}, *, max_backoff={default}, {dice.word()}_x=None):",
            f'    """{dice.sentence()}"""',
            *(f"    {dice.word()} = {dice.word()}({dice.below(900)})" for _ in range(8)),
            f"    return {dice.word()}",
            "",
        ]
        if number == 95:
            lines += [
                "class VaultClient:",
                "    def rotate(self, key):",
                "        if key.pinned:",
                '            raise KeyPinnedError(f"{key.name} may not rotate")',
                "        return self._swap(key)",
                "",
            ]
    return "\n".join(lines)


@cache
def diff() -> str:
    dice = Dice("diff")
    parts = []
    for number in range(70):
        file = f"src/{dice.word()}/{dice.word()}_{number}.py"
        old = [f" {dice.text(1)}" for _ in range(3)]
        new = [f"{dice.pick('+-')}{dice.sentence()}" for _ in range(12)]
        if number == 33:
            file = "src/settings/limits.py"
            new[5:6] = ["-REQUEST_TIMEOUT = 30", "+REQUEST_TIMEOUT = 125"]
        if number == 58:
            file = "src/merge/three_way.py"
            new[4] = "-def legacy_merge(base, ours, theirs):"
        parts += [
            f"diff --git a/{file} b/{file}",
            f"index {dice.digits(7)}..{dice.digits(7)} 100644",
            f"--- a/{file}",
            f"+++ b/{file}",
            f"@@ -{dice.below(90)},9 +{dice.below(90)},15 @@",
            *old,
            *new,
        ]
    return "\n".join(parts) + "\n"


@cache
def history() -> str:
    dice = Dice("history")
    parts = []
    for number in range(300):
        subject = dice.words(6).capitalize()
        if number == 187:
            subject = "Fix the race in the refresh of tokens"
        parts.append(
            f"Commit: {dice.digits(40)}\n"
            f"Author: {dice.name()}{number} <{dice.word()}@example.org>\n"
            f"Date: {dice.time()}\nMessage: {subject}\n\n{dice.text(2)}\n"
        )
    return "\n".join(parts)


@cache
def traceback() -> str:
    """Return 2,000 frames of an error that another one caused, which stands in the middle."""
    dice = Dice("traceback")

    def frames(count: int) -> list[str]:
        return [
            f'  File "/srv/app/{dice.word()}/{dice.word()}.py", line {dice.below(900)}, in '
            f"{dice.word()}\n    {dice.word()} = self.{dice.word()}({dice.word()}, depth + 1)"
            for _ in range(count)
        ]

    return "\n".join(
        [
            "Traceback (most recent call last):",
            *frames(900),
            "psycopg.errors.UniqueViolation: duplicate key value violates unique constraint"
            ' "tenant_slug_key"',
            "DETAIL:  Key (slug)=(north-harbour) already exists.",
            "",
            "During handling of the above exception, another exception occurred:",
            "",
            "Traceback (most recent call last):",
            *frames(1100),
            "RuntimeError: migration 0042 stopped after 318 of 1204 tenants",
        ]
    )


@cache
def snapshot() -> str:
    dice = Dice("snapshot")
    lines = ["## Latest page snapshot", 'uid=1_0 RootWebArea "Settings"', "  uid=1_1 main"]
    for number in range(150):
        uid = 10 + 7 * number
        lines += [
            f'    uid=1_{uid} region "{dice.words(3).capitalize()}"',
            f'      uid=1_{uid + 1} heading "{dice.words(3).capitalize()}" level="2"',
            f'      uid=1_{uid + 2} StaticText "{dice.text(2)}"',
            f'      uid=1_{uid + 3} textbox "{dice.words(2).capitalize()}" value="{dice.word()}"',
            f'      uid=1_{uid + 4} button "Save {dice.words(2)}"',
        ]
        if number == 97:
            lines.append(f'      uid=1_{uid + 5} button "Delete this workspace"')
    return "\n".join(lines)


@cache
def app_log() -> str:
    lines = _log("app", 3000)
    for position in range(67, 3000, 127):
        head = f"{clock(2 * position)} ERROR [tls-9]"
        lines[position] = f"{head} certificate of node-{position} is not trusted"
    return "\n".join(lines)
