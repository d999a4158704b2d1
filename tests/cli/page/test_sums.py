"""`report --html`: one page of the ledger's sums, which works in a browser without a network."""

import base64
import hashlib
import re
import time
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from mcp_abridge import cli
from mcp_abridge.cli import page
from mcp_abridge.storage.ledger import LedgerFile
from mcp_abridge.storage.meter import Definitions, Looks, Row, Warnings

from tests.cli.conftest import Run
from tests.cli.page.conftest import Click
from tests.ledgers import filled
from tests.servers import install

UPLOT = Path(page.__file__).parent / "uplot"
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e"
ESCAPED = "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;\\u202e"
ROWS = (
    Row("list_issues", "issues", "shaped", "github", "codex", 4, 700_000, 9_000, 630_000, 8_000,
        client_cut=600_000, cuts_before=2, largest=8_000),
    Row("get_me", None, "untouched", None, None, 300, 150_000, 150_000, 150_000, 150_000,
        largest=500),
    Row("git_log", "log", "shadow", None, None, 1, 70_000, 5_000, 60_000, 4_000,
        largest=60_000, cuts_after=1),
    Row(HOSTILE, HOSTILE, "failed", HOSTILE, HOSTILE, 2, 9_000, 9_000, 9_000, 9_000,
        largest=5_000),
)  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Fill a ledger over three days, with names that would leave their place in a page."""
    path = str(tmp_path / "ledger.sqlite3")
    for days in range(3):
        filled(path, *ROWS, at=time.time() - days * 86_400)
    with closing(LedgerFile(path)) as file:
        definitions = [Definitions("github", 2, 92_000, 61_000), Definitions(HOSTILE, 1, 9, 8)]
        file.write([Warnings(HOSTILE, HOSTILE, 7), *definitions])
    return path


def write_page(ledger: str, *arguments: str, name: str = "page.html") -> str:
    path = Path(ledger).with_name(name)
    assert cli.main(["report", "--ledger", ledger, "--html", str(path), *arguments]) == 0
    return path.read_text(encoding="utf-8")


def cells(html: str) -> list[list[str]]:
    return [
        [
            unescape(re.sub(r"<[^>]+>", "", cell)).strip()
            for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    ]


def test_the_page_shows_large_tools_first_then_savings_then_the_rest(ledger: str) -> None:
    html = write_page(ledger)
    assert re.findall(r"<h2 [^>]+>(.+)</h2>", html) == [
        "Still large", "Over time", "Saved", "Definitions of tools", "Warnings",
    ]  # fmt: skip
    rows = cells(html)
    large = "Tool,Calls,Model read,Share,Average,Largest,Still cut,Cut without the proxy"
    assert rows[:3] == [
        large.split(","),
        ["get_me", "900", "450 kB", "66%", "500 B", "500 B", "0", "0"],
        ["git_log", "3", "180 kB", "26%", "60.0 kB", "60.0 kB", "3", "0"],
    ]
    saved = "Calls,Shaped,Failed,Servers sent,Model read,Saved,Saved share,In shadow mode"
    first = rows.index(["Rule", *saved.split(",")])
    assert ",".join(rows[first + 1]) == "issues,12,12,0,1.89 MB,24.0 kB,1.87 MB,99%,0 B"
    assert ["github", "2", "92.0 kB", "61.0 kB"] in rows
    days = rows.index(["Time", "Calls", "Servers sent", "Model read"])
    assert [row[1:] for row in rows[days + 1 : days + 4]] == [["307", "849 kB", "227 kB"]] * 3


def test_the_page_says_after_which_answers_more_was_asked_for(ledger: str) -> None:
    head = "Shortened, the rest kept", "Asked for all or several parts of", "Called again"
    assert head[0] not in write_page(ledger)
    nobody = None, None, None
    filled(ledger, Looks("git_log", *nobody, 9, 3, 2, 1), Looks("get_me", *nobody, 4))
    rows = cells(write_page(ledger))
    assert rows[0][-3:] == [*head]
    assert {row[0]: row[-3:] for row in rows[1:5] if row[0][0].isalpha()} == {
        "get_me": ["4", "0", "0"], "git_log": ["9", "5", "1"], "list_issues": ["0", "0", "0"],
    }  # fmt: skip


def test_names_from_the_ledger_are_text(ledger: str) -> None:
    html = write_page(ledger)
    assert HOSTILE not in html
    assert html.count(ESCAPED) >= 8  # a tool (twice), a rule, a server, a client, of a warning ...
    assert html.count("<script>") == html.count("</script>") == 1
    assert "<img" not in html


def test_the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(
    ledger: str,
) -> None:
    html = write_page(ledger)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', html)
    hashes = []
    for tag in ("script", "style"):
        [text] = re.findall(rf"<{tag}>(.*)</{tag}>", html, re.DOTALL)
        hashes.append(base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())
    assert policy.split("; ") == [
        "default-src 'none'", f"script-src 'sha256-{hashes[0]}'", f"style-src 'sha256-{hashes[1]}'",
        "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip
    assert len(html) < 100_000


def test_the_library_is_the_pinned_one_and_its_licence_is_in_the_page(ledger: str) -> None:
    package = install.CACHE / "browser" / "node_modules" / "uplot"
    for file in {*UPLOT.iterdir()} - {UPLOT / "sbom.cdx.json"}:
        source = package / ("dist" if file.name.startswith("uPlot") else "") / file.name
        assert file.read_bytes() == source.read_bytes(), f"copy {source} to {file}"
    html = write_page(ledger)
    assert (UPLOT / "LICENSE").read_text() in html


def test_a_period_of_hours_is_shown_by_hours(ledger: str) -> None:
    rows = cells(write_page(ledger, "--since", "12h"))
    days = rows.index(["Time", "Calls", "Servers sent", "Model read"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:00", rows[days + 1][0])


def test_the_page_goes_to_a_pipe_or_a_file(ledger: str, tmp_path: Path, run: Run) -> None:
    out, err = run("report", "--ledger", ledger, "--html", "-")
    assert err == ""
    assert out.startswith("<!DOCTYPE html>")
    page = tmp_path / "page"
    err = run("report", "--ledger", ledger, "--html", page).err
    assert err == f"mcp-abridge report: wrote {page}; open it in a browser\n"
    err = run("report", "--ledger", ledger, "--html", tmp_path / "no" / "page", code=2).err
    assert err == f"mcp-abridge report: {tmp_path}/no/page: No such file or directory\n"

    path = tmp_path / "empty.sqlite3"
    LedgerFile(str(path)).close()
    err = run("report", "--ledger", path, "--html", tmp_path / "other", code=1).err
    assert "nothing is recorded yet" in err
    assert not (tmp_path / "other").exists()


@pytest.mark.long
@pytest.mark.slow
def test_in_a_browser_the_page_sorts_draws_has_two_themes_and_loads_nothing(
    ledger: str, tmp_path: Path, click: Click
) -> None:
    write_page(ledger)
    write_page(ledger, "--since", "1h", name="hour.html")
    html, hour = tmp_path / "page.html", tmp_path / "hour.html"
    view = click("click.mjs", html, hour, tmp_path)

    assert view["logged"] == []
    assert view["requested"] == [each.as_uri() for each in (html, hour, html)]
    assert view["tables"][:2] == ["By tool", "By client"]

    name = HOSTILE.replace("\u202e", r"\u202e")
    total = "Total"  # stays last
    assert [(each["order"], each["names"]) for each in view["sorted"]] == [
        ([["Model read", "descending"]], ["get_me", "git_log", name, "list_issues", total]),
        ([["Calls", "descending"]], ["get_me", "list_issues", name, "git_log", total]),
        ([["Calls", "ascending"]], ["git_log", name, "list_issues", "get_me", total]),
        ([["Tool", "ascending"]], [name, "get_me", "git_log", "list_issues", total]),
        ([["Largest", "descending"]], ["git_log", "list_issues", name, "get_me", total]),
    ]

    days = [time.strftime("%Y-%m-%d", time.localtime(time.time() - 86_400 * n)) for n in (2, 1, 0)]
    assert view["times"] == [[day, "307", "849 kB", "227 kB"] for day in days]
    assert view["hovered"] == [days[1], "849 kB", "227 kB"]
    [at, _, *sizes] = view["singleTimes"]
    assert view["singleHovered"] == [at, *sizes] == [at, "849 kB", "227 kB"]
    assert view["singleBar"] == "11,107,203,255"
    light, dark = view["light"], view["dark"]
    assert light["background"] == "rgb(246, 247, 249)"
    assert dark["background"] == "rgb(20, 22, 26)"
    # The bars of both sizes, and the lines behind them.
    assert len(light["colors"]) == len(dark["colors"]) == 3
    assert not {*light["colors"]} & {*dark["colors"]}
    assert view["darkAtFirst"] == dark

    assert view["accessible"] == []  # what axe has to say of it
    assert view["beyond"] <= 0  # no part of it is wider than a telephone

    assert (view["ran"], view["calls"]) == (False, [])
    assert (view["ranWithoutPolicy"], view["callsWithoutPolicy"]) == (True, ["/fetch", "/image"])
