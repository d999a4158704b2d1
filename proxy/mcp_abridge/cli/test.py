"""`mcp-abridge test`: run the cases of rule files, and print a diff for each failure."""

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING

from mcp_abridge.cli import takes_rules
from mcp_abridge.cli.terminal import print_lines, refuse
from mcp_abridge.document.printable import printable
from mcp_abridge.replay import cases, filling
from mcp_abridge.replay.cases import CaseResult
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile
from mcp_abridge.ruleset.selection import load

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the verb."""
    takes_rules(parser)
    parser.add_argument(
        "-k", metavar="NAME", default="", help="run only cases whose `rule: name` holds this text"
    )
    parser.add_argument("--junit", metavar="F", help="write the outcome to F as JUnit XML")
    parser.add_argument(
        "--require-tests", action="store_true", help="fail for every rule that has no test"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="write what comes out into the tests that expect nothing yet; nothing else is changed",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the cases.

    Returns 1 if a case fails or a rule lacks a required test, 2 if no case matches `-k`. Raises
    RuleErrors if a file does not load, OSError if a file or the report cannot be written.
    """
    started = time.perf_counter()
    python: bool = arguments.allow_python
    loaded = partial(load, arguments.rules, allow_python=python)
    files = loaded()
    if arguments.update:
        for file in files:
            print_lines(*filling.fill(file, allow_python=python))
        files = loaded()
    results = [(file, list(cases.run(file, arguments.k))) for file in files]
    seconds = time.perf_counter() - started
    bare = [rule for file in files for rule in file.rules if not rule.tests]
    every = [result for _, ran in results for result in ran]
    _print(every, bare if arguments.require_tests else [], seconds)
    if arguments.junit is not None:
        _write(arguments.junit, results)
    if arguments.k and not every:
        return refuse("test", f"no case has {arguments.k!r} in its rule or its name")
    failed = any(not result.ok for result in every)
    return 1 if failed or (arguments.require_tests and bare) else 0


def _print(results: list[CaseResult], bare: list[Rule], seconds: float) -> None:
    for result in results:
        if not result.ok:
            print_lines(f"FAILED {result.place}: {result.rule}: {result.case}")
            print_lines(*(f"    {line}" for line in result.message.split("\n")))
    for rule in bare:
        print_lines(f"FAILED {rule.place}: {rule.name}: the rule has no test")
    failed = sum(not result.ok for result in results)
    counts = [f"{len(results) - failed} passed"]
    counts += [f"{failed} failed"] if failed else []
    counts += [f"{len(bare)} without a test"] if bare else []
    print_lines(f"{', '.join(counts)} in {seconds:.2f} s")


def _write(path: str, results: list[tuple[RuleFile, list[CaseResult]]]) -> None:
    from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

    root = Element("testsuites", name="mcp-abridge test")
    for file, ran in results:
        suite = SubElement(root, "testsuite", name=printable(file.name))
        _count(suite, ran)
        for result in ran:
            where, _, line = result.place.rpartition(":")
            texts = {"classname": result.rule, "name": result.case, "file": where, "line": line}
            texts = {key: printable(text) for key, text in texts.items()}
            case = SubElement(suite, "testcase", texts, time=f"{result.seconds:.3f}")
            if not result.ok:
                lines = list(map(printable, result.message.split("\n")))
                SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    _count(root, [result for _, ran in results for result in ran])
    indent(root)
    with open(path, "wb") as out:
        ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)


def _count(suite: "Element", ran: list[CaseResult]) -> None:
    suite.set("tests", str(len(ran)))
    suite.set("failures", str(sum(not result.ok for result in ran)))
    suite.set("errors", "0")
    suite.set("time", f"{sum(result.seconds for result in ran):.3f}")
