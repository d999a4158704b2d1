"""`python -m tests.tokens`: the error of the estimate of tokens, by kind of text.

The real counts are those of o200k_base, by the npm package gpt-tokenizer.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from proxy.document.tokens import tokens
from tests.answers import structured, texts
from tests.servers import install

ROOT = Path(__file__).resolve().parents[1]
COUNT = """
import {countTokens} from 'gpt-tokenizer/encoding/o200k_base';
import {readFileSync} from 'node:fs';
const texts = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map(text => countTokens(text))));
"""
OTHER_SCRIPTS = (
    "服务器的响应太长、模型无法一次读完。代理只显示最重要的字段、并说明省略了什么。",
    "サーバーの応答が長すぎると、モデルは一度に読めません。残りの読み方を伝えます。",
    "서버의 응답이 너무 길면 모델이 한 번에 읽을 수 없습니다. 나머지를 읽는 방법을 알려 줍니다.",
)


def corpus() -> dict[str, list[str]]:
    """Return texts by kind."""
    records = [structured.issues()[:20], structured.orders(100), structured.lint()[:200]]
    return {
        "JSON": [json.dumps(each, separators=(",", ":")) for each in records],
        "indented JSON": [json.dumps(each, indent=2) for each in records],
        "prose": [path.read_text() for path in sorted(ROOT.glob("*.md"))],
        "code": [path.read_text() for path in sorted((ROOT / "proxy/document").glob("*.py"))],
        "logs": [texts.build_log()[:40_000], texts.deploy_log()[:40_000]],
        "CSV and YAML": [structured.customers_csv()[:40_000], structured.pods_yaml()[:40_000]],
        "Chinese, Japanese, Korean": list(OTHER_SCRIPTS),
    }


class Error(NamedTuple):
    """The tokens of a kind of text, those estimated, and the share by which these are wrong."""

    kind: str
    counted: int
    estimated: int

    @property
    def share(self) -> float:
        return self.estimated / self.counted - 1


def errors() -> Iterable[Error]:
    """Count and estimate the tokens of each kind of text. Raises NotInstalled."""
    install.require()
    kinds = corpus()
    every = [text for each in kinds.values() for text in each]
    completed = subprocess.run(
        [install.node(), "--input-type=module", "-e", COUNT],
        cwd=install.CACHE / "tokenizer",
        input=json.dumps(every),
        capture_output=True,
        text=True,
        check=True,
    )
    counts = iter(json.loads(completed.stdout))
    for kind, each in kinds.items():
        yield Error(kind, sum(next(counts) for _ in each), sum(map(tokens, each)))


def main() -> int:
    """Print a line for each kind of text."""
    for error in errors():
        print(f"{error.kind:26} {error.counted:8,} {error.estimated:8,} {error.share:+7.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
