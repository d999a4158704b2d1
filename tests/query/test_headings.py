"""Outlines: what is a heading in each kind of text, and what only looks like one."""

import re
from pathlib import Path

import pytest
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Document
from mcp_abridge.query import headings as module
from mcp_abridge.query.headings import headings
from mcp_abridge.query.view import look
from mcp_abridge.summary.structure_in_text import read_structure

RST = """=====
Guide
=====

Words::

    # a comment
    def no_function():

Setting up
----------

More words.

Below
~~~~~

Using it
--------
a
"""
ASCIIDOC = "= Guide\n:toc:\n\n== One\n\n----\n# no heading\n----\n\n=== Inner\n\n== Two\n"
LATEX = r"""\documentclass{article}
\section{One \emph{thing}}
\subsection{Inner}
\section*{Two}
"""
HTML = """<html><script>let a = "<h2>no</h2>"</script><style>h2 {}</style><!-- <h2>no</h2> -->
<h1>A &amp; B</h1><p>x</p><h2 class="a"><a href="#">One</a></h2><h2>
Two</h2>"""
DIFF = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@
 x
-y
+y2
+++ y3
diff --git a/old.txt b/new.txt
rename from old.txt
rename to new.txt
diff --git a/gone b/gone
--- a/gone
+++ /dev/null
@@ -1,2 +0,0 @@
-- a list
-b
--
2.40.1
""".replace("--\n2", "-- \n2")
PYTHON = '''"""Names of functions.

def no_function():
"""
# class NoClass:

def first(a, b=1):
    # def inner_comment():
    return a


class Second(Base):
    def third(self) -> int:
        \'\'\'
        def no_method(self):
        \'\'\'
        return 1
'''
TYPESCRIPT = """// function no() {
/*
function noEither() {
*/
export async function load(a: string): Promise<void> {
}
export const save = async (b) => {
}
abstract class Store<T> extends Base {
}
const size = 3
"""
GO = (
    "package a\n\nfunc main() {\n}\n\nfunc (s *Store) Get(k string) error {\n}\n\n"
    "type Store struct {\n}\n"
)
C = """/* int no(void) { */
#include <a.h>
static const char *name_of(int kind,
                           void (*each)(int)) {
    if (kind) {
        return "a";
    }
}

int
main (int argc, char **argv)
{
    while (next()) {
    }
}

struct point origin = { 0, 0 };
void declared(int a);
void Shape::draw(const Brush& brush) const {
}
"""
JAVA = """package a;
public class Shop extends Base {
    private final int size = 3;
    public Shop(String name) {
        if (name == null) {
            throw new Error(name);
        }
    }
    protected static List<Item> find(String name, int most) throws NotFound {
        for (Item item : items) {
        }
    }
}
"""
PERL = "use strict;\n# a comment\n\n=head1 NAME\n\n# one\n\n=head2 Use\n\n=cut\n\n=head1 SEE\n\nx\n"
PAGE = "<!DOCTYPE html>\n<h1>A</h1>\n<pre>\n# no\n\n# heading\n</pre><h2>B</h2>\n<h2>C</h2>\n"
TOML = '[project]\nname = "a"\n\n[tool.ruff]\nx = 1\n\n[[tool.files]]\ny = 2\n'
MANUAL = "LS(1)   User\n\nNAME\n       ls - list\n\nSYNOPSIS\n       ls\n\nSEE ALSO\n       dir\n"
REPORT = """Contents
1 Safety ........ 2
2 Storage ....... 3

1 Safety

Read all of it:
1. Open the lid
2. Close the lid

1.1 For users
a

3.5 kg is the weight.

2 Storage
2.1 is no heading

2.1 In winter
b
"""
LAW = (
    "THE COUNCIL,\n\nArticle 9 of it says so.\n\nCHAPTER I\n\nUSE OF PORTS\n\nArticle 1\n\n"
    "Scope\n\nPage 2\n\nArticle 2\n\n1. All ports are ports.\n\nsee\nArticle 3\n"
)

MANIFESTS = "".join(
    f"---\n# Source: {kind}.yaml\nkind: {kind}\nmetadata:\n  labels:\n    name: x\n  name: {name}\n"
    "spec:\n  name: other\n"
    for kind, name in (("Service", "basket"), ("CronJob", "feed"), ("Secret", "keys"))
)

SQL = """-- Name: loans; Type: TABLE
CREATE TABLE public.loans (
    id bigint NOT NULL
);
create or replace view due_loans as
  SELECT 'create table x';
CREATE UNIQUE INDEX of_loans ON public.loans (id);
CREATE TABLE IF NOT EXISTS "fines"(id int);
"""

NGINX = """user www;
http {
    gzip on;
    server {
    }
}
events {
    worker_connections 1024;
}
stream {
    map $a $b {
    }
}
"""
TASKS = "".join(
    f"TASK [{name}] {'*' * 40}\nok: [web01]\nok: [web02]\n\n" for name in ("a", "b", "c", "d", "e")
)


@pytest.mark.parametrize(
    ("text", "outline"),
    [
        (REPORT, ["1 1 Safety", "2 1.1 For users", "1 2 Storage", "2 2.1 In winter"]),
        (LAW, ["1 CHAPTER I USE OF PORTS", "2 Article 1 Scope", "2 Article 2"]),
        (RST, ["1 Guide", "2 Setting up", "3 Below", "2 Using it"]),
        ("One\n===\n\ntext\n\nTwo\n---\n\nThree\n---\n", ["1 One", "2 Two", "2 Three"]),
        (ASCIIDOC, ["1 = Guide", "2 == One", "3 === Inner", "2 == Two"]),
        (LATEX, ["3 One thing", "4 Inner", "3 Two"]),
        (HTML, ["1 A & B", "2 One", "2 Two"]),
        (DIFF, ["1 src/a.py +2 -1", "1 new.txt +0 -0", "1 gone +0 -2"]),
        (
            PYTHON,
            ["1 def first(a, b=1)", "1 class Second(Base)", "2 def third(self) -> int"],
        ),
        (
            TYPESCRIPT,
            [
                "1 export async function load(a: string): Promise<void>",
                "1 export const save = async (b) =>",
                "1 abstract class Store<T> extends Base",
            ],
        ),
        (
            GO,
            [
                "1 func main()",
                "1 func (s *Store) Get(k string) error",
                "1 type Store struct",
            ],
        ),
        (
            C,
            [
                "1 static const char *name_of(int kind, void (*each)(int))",
                "1 int main (int argc, char **argv)",
                "1 void Shape::draw(const Brush& brush) const",
            ],
        ),
        (
            JAVA,
            [
                "1 public class Shop extends Base",
                "2 public Shop(String name)",
                "2 protected static List<Item> find(String name, int most) throws NotFound",
            ],
        ),
        (PERL, ["1 NAME", "2 Use", "1 SEE"]),
        (PAGE, ["1 A", "2 B", "2 C"]),
        (TOML, ["1 [project]", "2 [tool.ruff]", "2 [[tool.files]]"]),
        (MANUAL, ["1 NAME", "1 SYNOPSIS", "1 SEE ALSO"]),
        (
            SQL,
            [
                "1 TABLE public.loans",
                "1 or replace view due_loans",
                "2 UNIQUE INDEX of_loans",
                '1 TABLE IF NOT EXISTS "fines"',
            ],
        ),
        (NGINX, ["1 http", "1 events", "1 stream"]),
        (TASKS, [f"1 TASK [{name}]" for name in "abcde"]),
        (MANIFESTS, ["1 Service basket", "1 CronJob feed", "1 Secret keys"]),
    ],
    ids=str,
)
def test_the_headings_of_each_kind_of_text(text: str, outline: list[str]) -> None:
    listed = headings(text, Fuel())
    assert [f"{each.level} {each.text}" for each in listed] == outline
    lines = text.splitlines()
    for each in listed:
        assert each.line == text.count("\n", 0, each.offset) + 1
        first = re.sub(r"\W+", " ", each.text).split()[0]
        assert first in " ".join(lines[each.line - 1 : each.line + 2])


@pytest.mark.parametrize(
    "text",
    [
        "all:\n\n# builds\nbuild:\n\n# tests\ntest:\n\n# cleans\nclean:\n",
        " a\n---\n 1\n\n b\n---\n 2\n\n c\n---\n 3\n",
        "+ ls\n+++ dir\n@@\n" * 5,
        "=== RUN   TestA\n--- PASS: TestA\n" * 5,
        "[info] a\n[warn] b\n[info] c\n",
        "BUILD SUCCESS\nTESTS PASSED\nALL DONE\n",
        "".join(f"A plan of size {n} may send {n} requests.\n\n" for n in range(9)),
        'Traceback (most recent call last):\n  File "a.py", line 1\n' * 5,
        "Ann:\n  Who is there?\nBob:\n  It is me.\n" * 5,
        "The cat is out.\nIt is late.\n\nThe dog is in.\nA lamp is on.\n\nNo one reads it.\n\n",
        "a class of things\nthe function (of time)\nstruct and so on\n" * 3,
    ],
)
def test_comments_tables_and_logs_have_no_headings(text: str) -> None:
    assert len(headings(text, Fuel())) < 3


def test_the_functions_and_classes_of_a_module_are_its_outline() -> None:
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert len(headings(text, Fuel())) == text.count("\ndef ") + text.count("\nclass ")


def test_an_outline_of_many_headings_leaves_out_lower_levels_and_cuts_no_name_short() -> None:
    text = "# Reference\n\n" + "".join(
        f"## part.{n}(path, options, callback)\n\na\n\n" + "### Event: 'close'\n\nb\n\n" * 9
        for n in range(100)
    )
    outline = look(Document(text), "outline()")
    assert outline["left_out"] == "900 of 1001 headings, of lower levels"
    assert outline["headings"][-1]["text"] == "## part.99(path, options, callback)"
    assert len(outline["headings"]) == 101


def test_of_files_there_is_no_lower_level_to_leave_out() -> None:
    diff = "".join(f"--- a/{n}.py\n+++ b/{n}.py\n@@ -1 +1 @@\n-a\n+b\n" for n in range(300))
    assert look(Document(diff), "outline()")["left_out"] == "100 of 300 headings"


def test_a_heading_of_a_lower_level_needs_no_empty_line_above() -> None:
    text = "# Guide\n\n" + "".join(
        f"## Step {n}\nDo it.\n### Part {n}\nSo.\n" + "\n" * (n % 5 == 0) for n in range(20)
    )
    assert len(headings(text, Fuel())) == 41


@pytest.mark.parametrize("mark", ["\t", "→", ": ", " | "])
@pytest.mark.parametrize("first", [1, 401])
def test_source_with_line_numbers_has_the_outline_of_the_source(mark: str, first: int) -> None:
    source = "".join(f"def part_{n}(each):\n    return each\n\n" for n in range(30))
    lines = source.splitlines()
    numbered = "".join(f"{n:6}{mark}{line}\n" for n, line in enumerate(lines, first))
    listed = headings(numbered, Fuel())
    assert [(each.line, each.text) for each in listed] == [
        (1 + 3 * n, f"def part_{n}(each)") for n in range(30)
    ]
    starts = [numbered.rfind("\n", 0, numbered.index(f"part_{n}(")) + 1 for n in range(30)]
    assert [each.offset for each in listed] == starts
    assert read_structure(Document(numbered), Fuel()) is None
