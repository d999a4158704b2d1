"""`python -m tests.answers`: asks each question in each way, and prints what it took.

The tables are the same on each run; times go to stderr. Ends with 1 if an arm could not run. With
--model and --endpoint, a model answers the questions instead, directly and through the proxy.
--unseen asks the questions of unseen.yaml only, --looks shows what a first look says of the lists
of described results.
"""

import argparse
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from tests.answers import looks, model, table
from tests.answers.arm import Arm
from tests.answers.direct import ClaudeCode, Codex, Direct, VisualStudioCode
from tests.answers.ours import Best, LookThenView, Notices, Paging
from tests.answers.questions import questions
from tests.answers.rivals import rivals
from tests.answers.session import Attempt, attempts
from tests.answers.sets import SEEN, described_questions

OURS = (Paging, Notices, LookThenView, Best)


def arms(budget: str | None) -> list[Arm]:
    options = ("--budget", budget) if budget else ()
    direct = (Direct(), ClaudeCode(), Codex(), VisualStudioCode())
    return [*direct, *(kind(*options) for kind in OURS), *rivals()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.answers", description=__doc__)
    add = parser.add_argument
    add("-k", metavar="WORD", help="only questions with this in their name (a regular expression)")
    add("--arm", metavar="WORD", help="only arms with this in their name")
    add("--budget", metavar="SIZE", help="budget of ours (default: that of an unknown client)")
    add("-v", "--verbose", action="store_true", help="show each call, and the answer's beginning")
    add("--unseen", action="store_true", help="only the set that is kept for the end of a work")
    add("--looks", action="store_true", help="print what a first look shows of each list instead")
    add("--model", metavar="NAME", help="ask this model instead, at --endpoint")
    add("--endpoint", metavar="URL", help="the base of any OpenAI-compatible API: http://host/v1")
    add("--key-env", metavar="VAR", help="the environment variable with its key")
    options = parser.parse_args()
    if (options.model is None) != (options.endpoint is None):
        parser.error("--model and --endpoint belong together")
    if options.looks:
        for kind in ("unseen",) if options.unseen else SEEN:
            print(looks.table(looks.looks(kind, options.budget)))
        return 0
    every = (*questions(), *chain.from_iterable(map(described_questions, SEEN)))
    if options.unseen:
        every = described_questions("unseen")
    some = [question for question in every if re.search(options.k or "", question.name)]
    if options.model:
        key = os.environ[options.key_env] if options.key_env else ""
        endpoint = model.Endpoint(options.endpoint, options.model, key)
        print(model.report(endpoint, some, options.budget))
        return 0
    results: dict[str, list[Attempt]] = {}
    failures: dict[str, str] = {}
    watch = table.trace if options.verbose else None
    those = [arm for arm in arms(options.budget) if re.search(options.arm or "", arm.name)]

    def measure(arm: Arm) -> None:
        start = time.monotonic()
        try:
            own = [question for question in some if question.set in arm.sets]
            results[arm.name] = attempts(arm, own, watch)
        except Exception as error:
            failures[arm.name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            print(f"{arm.name}: not measured: {error}", file=sys.stderr)
        print(f"{arm.name}: {time.monotonic() - start:.1f} s", file=sys.stderr)

    with ThreadPoolExecutor(1 if watch else os.cpu_count()) as pool:
        list(pool.map(measure, those))
    results = {arm.name: results[arm.name] for arm in those if arm.name in results}
    print(table.summary(some, results, failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
