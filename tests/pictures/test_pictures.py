"""Pictures through the wrapper and the sidecar, what OCR reads of them, and the table of a page."""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from subprocess import PIPE, Popen, run
from typing import Any

import pytest
from PIL import Image

from tests.builders import file as rule_file
from tests.faults.scale import scaled
from tests.pictures import __main__ as page
from tests.pictures.results import blocks, drawn, image, job, link, notes, picture, resource, view
from tests.pictures.samples import SAMPLES, Sample, file, photo, screen
from tests.plain_server import IMPORT
from tests.python_client import PythonClient
from tests.serving import FRONTS
from tests.wrapped import START

TIMEOUT = {"type": "text", "text": "Timeout: no such button on the page."}


@cache
def desktop() -> Image.Image:
    return screen(2560, 1440, 26, 1)[0]


# Not while tests are collected, which each worker of a run does.
@cache
def results() -> dict[str, Any]:
    large = image(file(desktop(), "PNG"))
    return {
        "large": {"content": [{"type": "text", "text": "Done."}, large]},
        "failure": {"content": [TIMEOUT, large], "isError": True},
        "small": {"content": [image(file(photo(300, 200, 1), "JPEG"), "image/jpeg")]},
        "file": {"content": [resource(b"%PDF-1.4\n" + bytes(57_000), "application/pdf")]},
        "links": {"content": [link(number) for number in range(300)]},
    }


SERVER = f"""
{IMPORT}
RESULTS = json.load(open(sys.argv[1]))
TOOLS = [
    {{"name": name, "inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}
    for name in RESULTS
]
serve("pictures", "1", TOOLS, lambda name, arguments: RESULTS[name])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "server.py").write_text(SERVER)
    (folder / "results.json").write_text(json.dumps(results()))
    return [sys.executable, "-S", str(folder / "server.py"), str(folder / "results.json")]


# Those below have the wrapper, too.
@pytest.fixture(params=["http to a command", "stdio"][: scaled(1, 2)], scope="module")
def client(
    request: pytest.FixtureRequest, server: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PythonClient]:
    front = FRONTS[request.param]
    with front(server, [], tmp_path_factory.mktemp("front")) as proxy, proxy.connect("auto") as one:
        yield one


@pytest.mark.parametrize("tool", ["large", "failure"])
def test_a_client_gets_large_images_smaller_and_parts_of_them(
    tool: str, client: PythonClient
) -> None:
    result = client.call(tool, {})
    _, whole, note = result["content"]
    part, _ = client.call(tool, {"view": "image(0, [400, 100, 640, 480])"})["content"]

    assert result["isError"] == (tool == "failure")

    assert picture(whole).size == (1568, 882)
    assert "call again with view='image(0, [0, 0, 1568, 1440])'" in note["text"]
    assert picture(part).convert("RGB").tobytes() == desktop().crop((400, 100, 1040, 580)).tobytes()


def test_a_client_gets_everything_else_as_it_came_or_with_a_way_to_it(client: PythonClient) -> None:
    assert client.call("small", {}) | results()["small"] == client.call("small", {})
    assert "57,009 bytes" in client.call("file", {})["content"][0]["resource"]["text"]
    assert client.call("file", {"view": "blob(0)"})["content"] == results()["file"]["content"]
    assert len(json.dumps(client.call("links", {}))) < 10_000
    [rows] = client.call("links", {"view": "[?name=='document 250'].uri"})["content"]
    assert json.loads(rows["text"])["view"] == ["file:///docs/250.md"]


def test_without_the_extra_images_pass_and_nothing_is_said(server: list[str]) -> None:
    absent = f"import sys; sys.modules['PIL'] = None\n{START}"
    calls = [("large", {}), ("large", {"view": "image(0, [0, 0, 9, 9])"}), ("small", {})]

    direct, _ = lines(server, calls)
    wrapped, stderr = lines([sys.executable, "-c", absent, "--", *server], calls)

    assert wrapped[0] == direct[0]
    assert wrapped[2] == direct[2]
    assert "pip install 'mcp-abridge[images]'" in wrapped[1].decode()
    assert stderr == b""


def lines(command: list[str], calls: list[tuple[str, dict[str, Any]]]) -> tuple[list[bytes], bytes]:
    """Return the lines that answer calls, one after the other, and the stderr."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c"}}
    requests = [("initialize", hello)]
    requests += [("tools/call", {"name": name, "arguments": own}) for name, own in calls]
    answers = []
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for id, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
        return answers[1:], process.stderr.read()


def test_other_calls_go_on_while_an_image_is_drawn(server: list[str]) -> None:
    command = [sys.executable, "-c", START, "--", *server]
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for id, name in enumerate(("large", "small")):
            params = {"name": name, "arguments": {}}
            message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        order = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
        process.stdin.close()

    assert order == [1, 0]


TESSERACT = shutil.which("tesseract")
needs_ocr = pytest.mark.skipif(TESSERACT is None, reason="there is no tesseract (tesseract-ocr)")
WITH_WORDS = [sample for sample in SAMPLES if sample.has_words]


def words_read(raw: bytes, expected: str) -> int:
    """Count the words of a text that OCR reads in an image."""
    command = [str(TESSERACT), "stdin", "stdout", "--psm", "6"]
    one = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # several wait for each other
    text = run(command, input=raw, capture_output=True, check=True, env=one).stdout.decode()
    return (Counter(text.split()) & Counter(expected.split())).total()


def of_vendor(raw: bytes) -> bytes:
    """Scale an image as Anthropic documents it: at most 1,568 pixels and about 1,600 tokens."""
    opened = Image.open(BytesIO(raw)).convert("RGB")
    scale = min(1, 1568 / max(opened.size), (1600 * 750 / (opened.width * opened.height)) ** 0.5)
    size = int(opened.width * scale), int(opened.height * scale)
    return file(opened.resize(size, Image.Resampling.LANCZOS), "PNG")


def bytes_of(block: dict[str, Any]) -> bytes:
    return file(picture(block).convert("RGB"), "PNG")


@pytest.mark.long
@needs_ocr
@pytest.mark.slow
@pytest.mark.parametrize("sample", WITH_WORDS, ids=lambda sample: sample.name)
def test_no_fewer_words_are_read_than_if_the_vendor_scales_the_original(sample: Sample) -> None:
    raw, words = sample.make()
    ours = bytes_of(blocks(drawn(job(image(raw))))[0])

    count, of_original = (words_read(each, words) for each in (ours, of_vendor(raw)))

    assert count >= of_original * 0.99  # OCR misreads one word or another at any size
    assert count > 200 or "scrolled" in sample.name


@pytest.mark.long
@needs_ocr
@pytest.mark.slow
@pytest.mark.parametrize("sample", WITH_WORDS[3::6], ids=lambda sample: sample.name)
def test_as_many_words_are_read_in_a_part_as_in_that_part_of_the_original(sample: Sample) -> None:
    raw, words = sample.make()
    original = Image.open(BytesIO(raw)).convert("RGB")
    x, y, width, height = 300, original.height // 2, 900, 700
    expected = original.crop((x, y, x + width, y + height))

    outcome = view(job(image(raw)), f"image(0, {[x, y, width, height]})")

    count = words_read(bytes_of(blocks(outcome)[0]), words)
    assert count >= words_read(file(expected, "PNG"), words) > 20


def code(kind: str) -> str:
    """Return the first block of code of a kind on the page."""
    return page.PAGE.read_text().partition(f"```{kind}\n")[2].partition("```")[0]


def test_the_note_on_the_page_is_that_of_its_picture() -> None:
    turned = next(sample for sample in SAMPLES if sample.name == "a photo of a phone, turned")
    stated, own = (
        json.loads(code("json"))["_abridged"],
        notes(drawn(job(image(turned.make()[0])))),
    )

    assert stated["more"] == own["more"]
    assert stated["image(0)"].partition(", ")[0] == own["image(0)"].partition(", ")[0]


def test_the_rule_on_the_page_leaves_images_as_they_came() -> None:
    [rule] = rule_file(code("yaml")).rules
    own = job(results()["large"]["content"][1], rule=rule, tool="get_photo")

    assert drawn(own).raw is own.raw


@pytest.mark.slow
@pytest.mark.parametrize(
    "sample", SAMPLES[: scaled(1, len(SAMPLES))], ids=lambda sample: sample.name
)
def test_the_page_has_what_its_command_measures(sample: Sample) -> None:
    lines = page.PAGE.read_text().splitlines()
    [stated] = [line[2:-2].split(" | ") for line in lines if line.startswith(f"| {sample.name} |")]

    measured = page.row(sample.name, sample.make()[0])

    for one, other in zip(stated, measured, strict=False):
        assert numbers(one) == pytest.approx(numbers(other), rel=0.1)


def numbers(cell: str) -> list[float]:
    return [float(word.replace(",", "")) for word in cell.split() if word[0].isdigit()]
