"""`python -m tests.tokens`: the error of the estimate of tokens, by kind of text.

The real counts are those of o200k_base, by the npm package gpt-tokenizer.
"""

import json
import subprocess
from pathlib import Path

from mcp_abridge.document.tokens import tokens

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
        "code": [path.read_text() for path in sorted(ROOT.glob("proxy/mcp_abridge/document/*.py"))],
        "logs": [texts.build_log()[:40_000], texts.deploy_log()[:40_000]],
        "CSV and YAML": [structured.customers_csv()[:40_000], structured.pods_yaml()[:40_000]],
        "Chinese, Japanese, Korean": list(OTHER_SCRIPTS),
    }


def errors() -> dict[str, float]:
    """Return the share by which the estimate is wrong, by kind of text. Raises NotInstalled."""
    install.require({"tokenizer": install.FURTHER["tokenizer"]})
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
    return {
        kind: sum(map(tokens, each)) / sum(next(counts) for _ in each) - 1
        for kind, each in kinds.items()
    }


if __name__ == "__main__":
    for kind, share in errors().items():
        print(f"{kind:26} {share:+7.1%}")
