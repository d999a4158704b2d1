"""Shows how servers are installed, and that each starts, and that each TypeScript client works."""

import io
import os
import re
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread
from typing import Literal

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests import servers
from tests.conformance import install as conformance
from tests.servers import Call, install, typescript
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("servers")

COMMANDS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "filesystem": (servers.filesystem, "read_text_file"),
    "everything": (lambda _: servers.everything(), "echo"),
    "memory": (lambda folder: servers.memory(folder / "memory.jsonl"), "read_graph"),
    "github": (lambda _: servers.github(), "search_repositories"),
    "git": (servers.git, "git_log"),
    "sqlite": (lambda folder: servers.sqlite(folder / "some.db"), "read_query"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder that is a git repository with one commit and one file."""
    (tmp_path / "note.txt").write_text("a note\n")
    who = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_server_answers_initialize_and_lists_its_tools(name: str, folder: Path) -> None:
    command, tool = COMMANDS[name]
    with Wire(command(folder)) as wire:
        client = {"name": "wire", "version": "1.0.0"}
        wire.send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        wire.send("notifications/initialized")
        answer = orjson.loads(wire.send("tools/list", 2)[-1])
        assert tool in [tool["name"] for tool in answer["result"]["tools"]]


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_lists_calls_and_reports_errors(
    sdk: Literal["v1", "v2"], folder: Path
) -> None:
    note, missing = ({"path": str(folder / name)} for name in ("note.txt", "missing.txt"))
    command = servers.filesystem(folder)
    seen = typescript(sdk, command, Call("read_text_file", note), Call("read_text_file", missing))
    assert "read_text_file" in [tool["name"] for tool in seen.tools or []]
    read, refused = seen.results
    assert read["result"]["structuredContent"] == {"content": "a note\n"}
    assert refused["result"]["isError"] is True


@pytest.mark.parametrize(
    ("sdk", "mode", "version"),
    [
        ("v1", "auto", "2025-11-25"),
        ("v2", "legacy", "2025-11-25"),
        ("v2", "auto", "2026-07-28"),
        ("v2", "2026-07-28", "2026-07-28"),
    ],
)
def test_a_typescript_client_speaks_the_era_it_is_told(
    sdk: Literal["v1", "v2"],
    mode: Literal["auto", "legacy", "2026-07-28"],
    version: str,
    folder: Path,
) -> None:
    call = Call("git_log", {"repo_path": str(folder)})
    seen = typescript(sdk, servers.git(folder), call, mode=mode)
    assert seen.protocol_version == version
    assert "Begin" in seen.results[0]["result"]["content"][0]["text"]


# Advertises a tool whose structuredContent is a number where its schema wants a text.
MISMATCH = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    answers = {
        "initialize": lambda: {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": lambda: {"tools": [
            {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]},
        "tools/call": lambda: {"content": [], "structuredContent": {"x": 1}},
    }
    if "id" in message:
        result = answers[message["method"]]()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_refuses_what_breaks_the_output_schema(
    sdk: Literal["v1", "v2"], tmp_path: Path
) -> None:
    script = tmp_path / "server.py"
    script.write_text(MISMATCH)
    command = [sys.executable, str(script)]
    refused = typescript(sdk, command, Call("t")).results[0]
    assert refused["ok"] is False
    assert refused["error"]["code"] == -32602
    assert typescript(sdk, command, Call("t"), list_tools=False).tools is None


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_that_cannot_connect_says_why(sdk: Literal["v1", "v2"]) -> None:
    with pytest.raises(RuntimeError, match="ENOENT"):
        typescript(sdk, ["no-such-server"])


PACKAGE = b'{"name": "one", "version": "1.0.0"}'


class Registry:
    """A registry of one npm package over TLS, with a certificate of its own."""

    def __init__(self, folder: Path) -> None:
        self.certificate = certificate(folder)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = outer.archive() if self.path.endswith(".tgz") else outer.description()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> None:
        Thread(target=self.server.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def description(self) -> bytes:
        version = {**orjson.loads(PACKAGE), "dist": {"tarball": f"{self.url}/one.tgz"}}
        latest = {"latest": "1.0.0"}
        return orjson.dumps({"name": "one", "dist-tags": latest, "versions": {"1.0.0": version}})

    def archive(self) -> bytes:
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as archive:
            member = tarfile.TarInfo("package/package.json")
            member.size = len(PACKAGE)
            archive.addfile(member, io.BytesIO(PACKAGE))
        return raw.getvalue()


def certificate(folder: Path) -> Path:
    """Make a certificate for 127.0.0.1 that nobody has signed, in one file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (file := folder / "certificate.pem").write_bytes(private + signed.public_bytes(Encoding.PEM))
    return file


def test_what_is_not_installed_is_named_and_not_downloaded_by_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for installer in (install, conformance):
        monkeypatch.setattr(installer, "CACHE", tmp_path / "nothing")
        with pytest.raises(install.NotInstalled, match=r"nothing/.* does not hold .*make servers"):
            installer.require()
    assert not (tmp_path / "nothing").exists()


def test_an_installation_shows_what_it_does_and_how_long_that_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(pins: Path, folder: Path, env: Mapping[str, str]) -> None:
        install.run([sys.executable, "-c", "import time; time.sleep(1)"], folder, env)

    (tmp_path / "pins.txt").write_text("one==1")
    monkeypatch.setattr(install, "SIGN_OF_LIFE", 0.1)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        install.install_part(tmp_path / "one", tmp_path / "pins.txt", slow, os.environ)
    first, *going, last = capsys.readouterr().err.splitlines()
    assert first == "installing pins.txt into one"
    assert going
    assert all(re.match(r"  \d+ s so far, of 480 s at most: \S+", line) for line in going)
    assert re.fullmatch(r"  done in \d+ s", last)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system keeps no file of them")
def test_npm_reaches_a_registry_whose_certificate_only_the_system_knows(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    (tmp_path / "pins.json").write_text('{"dependencies": {"one": "1.0.0"}}')
    (folder := tmp_path / "folder").mkdir()
    env = {name: text for name, text in os.environ.items() if not name.startswith("NODE_")}
    env |= {"SSL_CERT_FILE": str(registry.certificate), "npm_config_registry": registry.url}
    with registry:
        install.npm_packages(tmp_path / "pins.json", folder, env)
    assert (folder / "node_modules/one/package.json").read_bytes() == PACKAGE
