"""The headings of a text: of markup, of the files in a diff, of source code, of settings.

Without them, a long text that is no log shows its two ends alone. What looks like a heading in
another sense is none: a comment in code, code in a fence or a docstring, a script in a page.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate, islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.line_numbers import are_numbered, without_numbers
from mcp_abridge.query.block_heads import SIGN, block_heads
from mcp_abridge.query.patterns import Pattern

MOST = 2000  # headings that are read
_OUTLINED = 200  # those that a view lists
_OUTLINE = 7000  # bytes of their words, and of what stands around each
_AROUND = 10  # such bytes: `["",1234],`
_NAMES = (120, 48, 36)  # characters of their words; fewer if with more they do not fit
_ENOUGH = 20  # headings without those of lower levels
_FEWEST = 3
_SHOWN = 120  # characters of a heading
_READ = 1200  # characters that such a heading may take in HTML
_FENCED = "^```(?s:.*?)^```|^~~~(?s:.*?)^~~~"
_NO_PAGE = "<!--(?s:.*?)-->|<[sS]cript[ >](?s:.*?)</[sS]cript>|<[sS]tyle[ >](?s:.*?)</[sS]tyle>"
_HEADS = (
    r"^#{1,6} .*$|^={1,6} .*[^=\n]$|<[hH][1-6](?:\s[^>]*)?>(?s:.*?)</[hH][1-6]>"
    r"|^\\(?:part|chapter|(?:sub){0,2}section)\*?\{.*$|^=head[1-6] .*$"
)
_MARKUP = rf"(?m){_FENCED}|{_NO_PAGE}|{_HEADS}"
_LINES_BELOW = "=-~^\"'*+#"
_BELOW = "(?m)^(?:" + "|".join(rf"\{sign}{{3,}}" for sign in _LINES_BELOW) + ")[ \t]*$"
_TITLE = re.compile(r"[^\W_]|[`:*(\[<]")
_GIT = "diff --git "
_DIFF = rf"(?m)^(?:{_GIT}.*|--- .*\n\+\+\+ .*)$"
_FILE = re.compile(r"^(?:(?:---|\+\+\+) (?:[ab]/)?|diff --git .* b/)([^\t\n]*)", re.MULTILINE)
_CHANGED = re.compile(r"(.+) \+\d+ -\d+")  # a file of a diff, as its heading says it
_SIGNATURE = re.compile(r"\n-- \n\d")  # of a mail with a patch
_MODIFIERS = (
    "export|default|declare|abstract|public|private|protected|internal|static|final|sealed|async"
    r"|partial|override|inline|unsafe|extern|open|data|pub(?:\([a-z]+\))?"
)
_DECLARATION = (
    rf"^[ \t]*(?:(?:{_MODIFIERS}) )*(?:"
    r"(?:class|interface|trait|struct|enum|record|object|protocol|namespace|module|mod|impl)"
    r"[ <][\w$.:<>,]+(?: (?:extends|implements|for|where|with) .*| ?[{:(<].*)?$"
    r"|(?:def|fn|fun|func|function)\*? [\w$.?!<>]+ ?[(<].*$|def [\w.?!]+$"
    r"|func \([^()\n]*\) \w+\(.*$|type \w+ (?:struct|interface)\b.*$"
    r"|const \w+ = (?:async )?(?:function\b|\([^()\n]*\) ?=>).*$)"
)
_PARAMETERS = r"\((?:[^(){};]|\([^(){};]*\))*\)[\w\s,.:]*\{"
_TYPE = r"[A-Za-z_][\w:.<>,\[\]]*(?: [\w:.<>,\[\]*&]+)*(?:[ *&]+|\n)"
# C has functions at the first column, Java and C# methods that begin with a modifier.
_FUNCTION = (
    rf"^{_TYPE}[\w:~]+ ?{_PARAMETERS}"
    rf"|^[ \t]+(?:public|private|protected|internal) (?:{_TYPE})?\w+ ?{_PARAMETERS}"
)
_CONTROL = re.compile(r"\b(?:if|else|for|while|switch|return|catch|do|new|foreach|unless|sub)\b")
_DOCSTRING = r"(?:\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)''')"
_QUOTED_CODE = "^[E>] {3}.*$"  # in the log of a test that failed
_CODE = (
    rf"(?m){_FENCED}|{_DOCSTRING}|^[ \t]*(?:#|//).*$|{_QUOTED_CODE}"
    rf"|^[ \t]*/\*(?s:.*?)\*/|^=begin$(?s:.*?)^=end$"
    rf"|(?:{_DECLARATION})(?:\s+{_DOCSTRING})?|{_FUNCTION}"
)
_SECTIONS = r"""(?m)^\[{1,2}[\w .:"'/@-]+\]{1,2}[ \t]*$"""
_MANUAL = r"(?m)^[A-Z][A-Z0-9 ,/()-]{2,40}$"
_NUMBER = r" {0,4}\d{1,2}(?:\.\d{1,2})"
_NUMBERED = rf"(?m)^{_NUMBER}{{0,4}}\.?[ \t]{{1,4}}\pL.{{1,100}}$"
_INNER_NUMBER = rf"(?m)^{_NUMBER}{{1,4}}\.?[ \t]{{1,4}}\p{{Lu}}"
_PARTS = rf"(?m)(?:{_DECLARATION})|{_FUNCTION}|{_HEADS}"
_ARTICLE = r"(?m)^\p{Lu}\pL{2,12} (?:\d{1,3}[a-z]?|[IVXLC]{1,7})\.?[ \t]*$"
_STATEMENT = (
    r"(?im)^create (?:(?:or replace|unique|temp(?:orary)?|unlogged|materialized|external|foreign"
    r"|virtual|global|local|definer *=[^\n ]+) )*"
    r"(?:table|view|index|function|procedure|trigger|type|sequence|domain|schema|policy)\s"
    r"(?:if not exists )?[^\s(;]+"
)
_OF_TABLES = re.compile(r"(?i)\b(?:index|trigger|sequence|policy)\s")  # which stand below these
_KIND = r"(?m)^kind: [A-Z]\w+[ \t]*$"
_NAME = re.compile(r"^metadata:(?:\n[ ].*)*?\n  name: (\S+)|^---", re.MULTILINE)
_WIDE = _ARTICLE.replace("{2,12}", "+")  # which is a program of a twentieth
_FORMS = (
    *(_DIFF, _KIND, _STATEMENT, _PARTS, _BELOW, _SECTIONS, _MANUAL, _INNER_NUMBER, _WIDE),
    SIGN,
)
_ANY = "|".join(f"(?:{form})" for form in _FORMS)
_PAGES = ("page", "seite", "página")  # which have no content of their own
_LEVEL = re.compile(r"(#+|=+) |(?:<[hH]|=head)([1-6])|\\(part|chapter|(?:sub)*section)")
_LATEX = ("part", "chapter", "section", "subsection", "subsubsection")
_COMMAND = re.compile(r"\\\w+\*?|[{}]")
_TAG = re.compile(r"<[^<>]*>")


class Heading(Struct, frozen=True):
    """A heading: its offset, its line (the first is 1), its level (from 1 on), and its words."""

    offset: int
    line: int
    level: int
    text: str


def headings(text: str, fuel: Fuel, *, of_blocks: bool = True) -> list[Heading]:
    r"""Return the headings of a text, at most MOST. Raises OutOfFuel if the search takes too long.

    If no lines have the form of headings, those `of_blocks` are.

    >>> [each.text for each in headings("Title\n=====\n\nA\n---\na\n\nB\n---\n", Fuel())]
    ['Title', 'A', 'B']
    """
    if are_numbered(text):
        every = headings(without_numbers(text), fuel, of_blocks=of_blocks)
        ends = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        return [replace(each, offset=ends[each.line - 1]) for each in every]
    if not any_heading(text, fuel):
        return []
    most = list[_Place]()
    others = (_statements, _underlined, _objects, _sections, _manual, _articles, _chapters)
    for readers in ((_files,), (_code, _markup), *((each,) for each in others)):
        for read in readers:
            most = max(most, [*islice(read(text, fuel), MOST)], key=len)
        if len(most) >= _FEWEST:
            break
    if of_blocks and len(most) < _FEWEST:
        return heads_of_blocks(text, fuel)
    return _numbered(text, most)


def heads_of_blocks(text: str, fuel: Fuel) -> list[Heading]:
    """Return the first lines of indented lines or of paragraphs, at most MOST, as headings."""
    heads = islice(block_heads(text, fuel), MOST)
    return _numbered(text, ((offset, 1, words) for offset, words in heads))


def for_outline(every: list[Heading]) -> list[Heading]:
    """Return those of `every` heading that a view lists, with their first words if these are long.

    If there are many, the lower levels are left out, so that the end of the text is covered.

    >>> parts = [Heading(n, n, 1 + n % 9, "a long name" * 9) for n in range(900)]
    >>> [len(for_outline(parts[:end])) for end in (9, 400, 900)]
    [9, 135, 100]
    """
    for level in sorted({heading.level for heading in every}, reverse=True):
        some = [heading for heading in every if heading.level <= level]
        if _ENOUGH <= len(some) <= _OUTLINED:
            for most in _NAMES:
                each = [_short(heading, most) for heading in some]
                if sum(len(heading.text.encode()) + _AROUND for heading in each) <= _OUTLINE:
                    return each
    return every[:_OUTLINED]


def _short(heading: Heading, most: int) -> Heading:
    words = heading.text if len(heading.text) <= most else f"{heading.text[: most - 1]}…"
    return Heading(heading.offset, heading.line, heading.level, words)


def amount(text: str, every: list[Heading]) -> str:
    """Return how many headings of a text, which are `every` one, a view lists, and of what.

    A file that is changed twice, as by two patches, would be counted twice.

    >>> diff = "".join(f"--- a/{name}\\n+++ b/{name}\\n@@ -1 +1 @@\\n-a\\n+b\\n" for name in "xyz")
    >>> amount(diff, headings(diff, Fuel())), amount(2 * diff, headings(2 * diff, Fuel()))
    ('3 files', '6 headings')
    """
    listed = len(for_outline(every))
    count = f"{listed} of {len(every)}" if len(every) > listed else f"{len(every)}"
    diff = all(text.startswith((_GIT, "--- "), heading.offset) for heading in every)
    files = {each[1] for heading in every if (each := _CHANGED.fullmatch(heading.text))}
    return f"{count} {'files' if diff and len(files) == len(every) else 'headings'}"


def heading_above(text: str, every: list[Heading], line_start: int) -> str:
    """Return the heading that a line stands under; if it is a heading, the one of a higher level.

    >>> text = "# A\\n## b\\nx\\n## c\\n"
    >>> [heading_above(text, headings(text, Fuel()), at) for at in (0, 9, 11)]
    ['', '## b', '# A']
    """
    place = bisect_left(every, line_start, key=lambda heading: heading.offset)
    own = every[place : place + 1]
    level = own[0].level if own and own[0].offset == line_start else len(text)
    above = (heading.text for heading in every[place - 1 :: -1] if heading.level < level)
    return next(above, "") if place else ""


def any_heading(text: str, fuel: Fuel) -> bool:
    """Tell by one search if a text may have a heading; most long texts are logs and have none."""
    text = without_numbers(text) if are_numbered(text) else text
    return _pattern(_ANY).search(text, fuel) is not None


_Place = tuple[int, int, str]
"""The offset, the level and the text of a heading."""


def _numbered(text: str, places: Iterable[_Place]) -> list[Heading]:
    line, counted, listed = 1, 0, []
    for offset, level, words in places:
        line += text.count("\n", counted, offset)
        counted = offset
        listed.append(Heading(offset, line, level, " ".join(words[:_READ].split())[:_SHOWN]))
    return listed


@cache
def _pattern(text: str) -> Pattern:
    return Pattern(text)


def _spans(pattern: str, text: str, fuel: Fuel) -> Iterator[tuple[int, int]]:
    return islice(_pattern(pattern).spans(text, fuel), 4 * MOST)


def _markup(text: str, fuel: Fuel) -> Iterator[_Place]:
    places, apart, end = list[_Place](), list[_Place](), -1
    for start, stop in _spans(_MARKUP, text, fuel):
        piece = text[start : min(stop, start + _READ)]
        level = _LEVEL.match(piece)
        if level is None:
            continue
        gap = 0 <= end >= start - 2  # the line before is a heading
        if level[1]:
            gap |= text[max(start - 4, 0) : start].replace("\r", "")[-2:] in ("", "\n", "\n\n")
            if not gap and piece[0] == "=":
                continue  # a line of a log
            gap |= len(level[1]) > 1  # no comment in code
            places.append((start, len(level[1]), piece))
        elif level[2]:
            from html import unescape

            words = piece[len(level[0]) :] if piece[0] == "=" else unescape(_TAG.sub(" ", piece))
            places.append((start, int(level[2]), words))
        else:
            places.append((start, 1 + _LATEX.index(level[3]), _COMMAND.sub("", piece)))
        if gap or not level[1]:
            apart.append(places[-1])
            end = stop
    if text.startswith("<") or any(text.startswith("=head", at) for at, _, _ in places):
        # In a page or in Perl, `#` is a comment.
        places, apart = (
            [each for each in some if text[each[0]] != "#"] for some in (places, apart)
        )
    # Comments in code have no levels, and stand right above what they are about.
    if len({level for _, level, _ in places}) > 1 or any(text[at] != "#" for at, _, _ in places):
        return iter(apart if len(apart) >= _FEWEST else places)
    after = (text[end : end + 1] for end in (text.find("\n", at) + 1 for at, _, _ in apart))
    return iter(apart if any(sign in ("\n", "\r") for sign in after) else [])


def _underlined(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield titles with a line of signs below, as in reStructuredText, with an empty one above."""
    levels: list[str] = []
    for start, _ in _spans(_BELOW, text, fuel):
        sign = text[start]
        title_start = text.rfind("\n", 0, max(start - 1, 0)) + 1
        title = text[title_start:start].rstrip()
        above = _line_above(text, title_start)
        if not _TITLE.match(title) or len(title) > _SHOWN or above.strip(sign):
            continue
        style = sign + above[:1]
        if style not in levels:
            levels.append(style)
        yield title_start, 1 + levels.index(style), title


def _files(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield the files of a diff, with how many lines are added and removed in each."""
    pattern = f"(?m)^{_GIT}" if _GIT in text else _DIFF
    starts = [start for start, _ in _spans(pattern, text, fuel)]
    for start, end in pairwise([*starts, len(text)]):
        head, _, hunks = text[start:end].partition("\n@@")
        hunks = _SIGNATURE.split(hunks)[0] if "\n-- \n" in hunks else hunks
        names = _FILE.findall(head)
        path = next((name for name in reversed(names) if name != "/dev/null"), "")
        yield start, 1, f"{path} +{hunks.count(chr(10) + '+')} -{hunks.count(chr(10) + '-')}"


def _code(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield the functions and classes of source code, by a keyword; their levels by indentation."""
    places, quoted = [], 0
    for start, end in _spans(_CODE, text, fuel):
        line = text[start : min(end, start + _READ)].expandtabs(4)
        line = line if line.endswith("{") else line.partition("\n")[0]
        words = line.lstrip()
        if line.startswith(("E   ", ">   ")):
            quoted += 1
        elif words[:1].isalpha() and not _CONTROL.match(words):
            places.append((start, len(line) - len(words), words.rstrip("{: \r")))
    indents = sorted({indent for _, indent, _ in places})
    for start, indent, words in places[:MOST] if quoted < _FEWEST else ():
        yield start, 1 + indents.index(indent), words


def _statements(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield what SQL creates: tables, views and functions, below them indexes and the like."""
    for start, end in _spans(_STATEMENT, text, fuel):
        words = text[start:end].partition(" ")[2]
        yield start, 1 + bool(_OF_TABLES.search(words)), words


def _objects(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield the objects of Kubernetes in documents of YAML, each by its kind and its name."""
    for start, end in _spans(_KIND, text, fuel):
        name = _NAME.search(text, end, end + _READ)
        words = f"{text[start:end].strip()} {(name and name[1]) or ''}"
        yield start, 1, words.removeprefix("kind: ").strip()


def _sections(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield the sections of INI or TOML."""
    for start, end in _spans(_SECTIONS, text, fuel):
        if "=" in text[end : end + _READ]:
            yield start, 1 + text.count(".", start, end), text[start:end]


def _manual(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield the sections of a manual page: capitals, with indented lines below."""
    for start, end in _spans(_MANUAL, text, fuel):
        if text[end : end + _SHOWN].lstrip("\n")[:1] in (" ", "\t"):
            yield start, 1, text[start:end]


def _chapters(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield numbered headings in their order, an empty line above: `2 Storage`, `2.1 Transport`."""
    places, last = list[_Place](), tuple[int, ...]((-1,))
    for start, end in _spans(_NUMBERED, text, fuel):
        number, words = text[start:end].split(None, 1)
        own = tuple(map(int, number.strip(".").split(".")))
        following = last < own and (own[0] <= last[0] + 1 or not places)
        of_contents = ".." in words  # in their table
        if following and not of_contents and not _line_above(text, start):
            places.append((start, len(own), text[start:end]))
            last = own
    return iter(places if any(level > 1 for _, level, _ in places) else [])


def _articles(text: str, fuel: Fuel) -> Iterator[_Place]:
    """Yield what a word and a number name, as in laws: `Article 5`, with the title below it."""
    levels: list[str] = []
    for start, end in _spans(_ARTICLE, text, fuel):
        word = text[start:end].split()[0]
        if not _line_above(text, start) and word.lower() not in _PAGES:
            levels += () if word in levels else (word,)
            title, line, _ = text[end : end + _SHOWN].strip().partition("\n")
            titled = line and not title.endswith((".", ":", ",", ";")) and title[:1].isalpha()
            yield start, 1 + levels.index(word), f"{text[start:end]} {title if titled else ''}"


def _line_above(text: str, start: int) -> str:
    """Return the line above the one that begins at `start`, without blanks around it."""
    return text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : start].strip()
