"""Works through examples/in-process: its page is its files, and each of them runs."""

import os
import re
import subprocess
import sys

import pytest

from tests import servers
from tests.clients.model import Model, Step
from tests.python_client import connected
from tests.servers.install import needs
from tests.wrapped import ROOT, texts

FOLDER = ROOT / "examples" / "in-process"
PAGE = (FOLDER / "README.md").read_text()
# The last file that is named before a block is the one that it is.
BLOCK = re.compile(r"`(\w+\.py)`(?:(?!```).)*?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(
    r"^\$ python (\w+\.py) \| cut -c 1-(\d+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
AGENTS = ("pydantic_ai_agent.py", "langchain_agent.py", "openai_agent.py")
SERVERS = {
    "sdk": [sys.executable, str(FOLDER / "sdk_server.py")],
    "fastmcp": servers.with_packages("fastmcp", FOLDER / "fastmcp_server.py"),
}


def test_the_blocks_of_the_page_are_the_files_of_the_folder() -> None:
    blocks = dict(BLOCK.findall(PAGE))
    assert blocks == {file.name: file.read_text() for file in FOLDER.glob("*.py")}


def test_the_function_says_what_the_page_says() -> None:
    [(name, width, output)] = CONSOLE.findall(PAGE)
    command = [sys.executable, str(FOLDER / name)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line[: int(width)] for line in (run.stderr + run.stdout).splitlines()]
    assert lines == output.splitlines()


@pytest.mark.usefixtures("servers")
# The middleware's own tests have FastMCP.
@pytest.mark.parametrize("kind", ["sdk", pytest.param("fastmcp", marks=pytest.mark.long)])
def test_the_servers_answer_in_brief_and_show_the_rest(kind: str) -> None:
    with connected(SERVERS[kind]) as client:
        assert "view" in client.tools()["list_issues"].input_schema["properties"]
        assert "200 of 500" in texts(client.call("list_issues", {"state": "open"}))[0]
        view = {"state": "open", "view": "issues[?number==`42`].title"}
        assert texts(client.call("list_issues", view)) == ['{"view":["Crash 42"]}']


@pytest.mark.long
@needs("agents")
@pytest.mark.parametrize("agent", AGENTS)
def test_the_model_of_an_agent_reads_the_answer_in_brief_then_the_view_it_asks_for(
    agent: str,
) -> None:
    call = {"state": "open"}
    plan = [Step("list_issues", call), Step("list_issues", call, further=True)]
    with Model([*plan, Step("list_issues", {**call, "view": "length(issues)"})]) as model:
        keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "-"}
        run = subprocess.run(
            [*servers.with_packages("agents", FOLDER / agent), "Which issues are open?"],
            env={**os.environ, **keys, "OPENAI_AGENTS_DISABLE_TRACING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.stdout == "All done.\n", run.stderr
    assert run.stderr.count("fetching the open issues") == 1
    first, second, third = (result.text for result in model.results)
    assert '"Crash 200",200]' in first
    assert '"title":"Crash 201"' in second
    assert third == '{"view":500}'
