"""The manifests of examples/sidecar: they can be read, and agree with the image and each other."""

import re
from typing import Any

import pytest
import yaml
from mcp_abridge.cli import serve
from mcp_abridge.ruleset.loading.config_model import LimitsSpec

from tests.test_image import COMPOSE, ROOT, environment, only

FOLDER = ROOT / "examples" / "sidecar"
PORT = int(only("EXPOSE").rest)
USER = int(only("USER").rest.partition(":")[0])
REPLICAS = {name: COMPOSE["services"][name] for name in ("replica-1", "replica-2")}
OBJECTS: dict[tuple[str, str], dict[str, Any]] = {
    (each["kind"], each["metadata"]["name"]): each
    for each in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
}
POD: dict[str, Any] = OBJECTS["Deployment", "mcp-abridge"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
VALUES: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
GENERATED = {each["name"]: each for each in VALUES["configMapGenerator"]}
LITERALS = dict(each.split("=", 1) for each in GENERATED["mcp-abridge"]["literals"])
IN_CLUSTER = ["serve", "--store", LITERALS["MCP_ABRIDGE_STORE"], LITERALS["UPSTREAM"]]
COMMANDS = [*(service["command"] for service in REPLICAS.values()), IN_CLUSTER]


@pytest.mark.parametrize("command", COMMANDS, ids=["replica-1", "replica-2", "kubernetes"])
def test_replicas_serve_with_a_store_that_they_share(command: list[str]) -> None:
    verb, flag, store, upstream = command
    assert (verb, flag) == ("serve", "--store")
    host, port = re.fullmatch(r"redis://([\w-]+):(\d+)/0", store).groups()  # type: ignore[union-attr]
    assert upstream == "http://server:3000/mcp"
    assert port == "6379"
    assert host in COMPOSE["services"] or ("Service", host) in OBJECTS


def test_options_that_they_use_are_those_of_serve() -> None:
    names = {name for option in serve.OPTIONS for name in (option.flag, option.variable)}
    used = {word for command in COMMANDS for word in command if word.startswith("--")}
    used |= {name for replica in REPLICAS.values() for name in replica["environment"]}
    used |= {variable["name"] for variable in CONTAINER["env"]} | set(environment())
    used |= set(LITERALS) - {"UPSTREAM"}
    used |= set(re.findall(r"MCP_ABRIDGE_\w+\b(?!_)", (ROOT / "Dockerfile").read_text()))
    used |= set(re.findall(r"MCP_ABRIDGE_\w+|(?<=`)--[a-z-]+", (FOLDER / "README.md").read_text()))
    assert used - {"MCP_ABRIDGE_"} <= names | {serve.TOKEN_VARIABLE}


def test_the_image_is_the_same_everywhere_and_of_this_version() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"$', project, re.MULTILINE)
    assert version is not None
    image = f"mcp-abridge:{version[1]}"
    assert {service["image"] for service in REPLICAS.values()} == {image}
    assert CONTAINER["image"] == image
    [replaced] = VALUES["images"]
    assert f"{replaced['name']}:{replaced['newTag']}" == image
    page = (FOLDER / "README.md").read_text()
    assert re.findall(r"^FROM (\S+)", page, re.MULTILINE) == [image]
    assert (FOLDER / REPLICAS["replica-1"]["build"]).resolve() == ROOT


def test_nothing_runs_as_root_or_may_become_it() -> None:
    for (kind, name), each in OBJECTS.items():
        if kind != "Deployment":
            continue
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert not pod["automountServiceAccountToken"], name
        for container in pod["containers"]:
            context = container["securityContext"]
            assert not context["allowPrivilegeEscalation"], name
            assert context["readOnlyRootFilesystem"], name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
    assert POD["securityContext"]["runAsUser"] == USER
    for replica in REPLICAS.values():
        assert replica["cap_drop"] == ["ALL"]
        assert replica["read_only"]
        assert f"{only('WORKDIR').rest}:uid={USER}" in replica["tmpfs"]


def test_probes_services_and_ports_lead_to_each_other() -> None:
    assert CONTAINER["ports"] == [{"name": "http", "containerPort": PORT}]
    probes = {name: CONTAINER[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")}
    assert probes == {
        "readinessProbe": {"path": "/readyz", "port": "http"},
        "livenessProbe": {"path": "/healthz", "port": "http"},
    }
    annotations = OBJECTS["Deployment", "mcp-abridge"]["spec"]["template"]["metadata"][
        "annotations"
    ]
    assert annotations["prometheus.io/port"] == str(PORT)
    for (kind, name), each in OBJECTS.items():
        if kind == "Deployment":
            labels = each["spec"]["template"]["metadata"]["labels"]
            service = OBJECTS["Service", name]["spec"]
            assert each["spec"]["selector"]["matchLabels"] == labels == service["selector"]
            (container,) = each["spec"]["template"]["spec"]["containers"]
            assert [port["targetPort"] for port in service["ports"]] == [
                port["name"] for port in container["ports"]
            ]


def test_the_token_comes_from_outside_the_manifests() -> None:
    (token,) = CONTAINER["env"]
    assert token["valueFrom"] == {"secretKeyRef": {"name": "mcp-abridge", "key": "token"}}
    for replica in REPLICAS.values():
        assert replica["environment"]["MCP_ABRIDGE_TOKEN"].startswith("${MCP_ABRIDGE_TOKEN:?")
    assert not [kind for kind, _ in OBJECTS if kind == "Secret"]


def test_there_is_time_to_drain_before_anything_is_killed() -> None:
    [container] = POD["containers"]
    word, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert word == "sleep"
    assert POD["terminationGracePeriodSeconds"] > int(seconds) + LimitsSpec().drain_seconds + 5
    for replica in REPLICAS.values():
        assert int(replica["stop_grace_period"].removesuffix("s")) > LimitsSpec().drain_seconds + 5


def test_the_recipes_use_variables_of_this_version_and_configurations_that_can_be_read() -> None:
    page = (ROOT / "examples" / "recipes.md").read_text()
    assert set(re.findall(r"MCP_ABRIDGE_\w+", page)) == {serve.TOKEN_VARIABLE}
    images = re.findall(r"(?:FROM|image:) (mcp-abridge:\S+)$", page, re.MULTILINE)
    assert {*images} == {COMPOSE["services"]["replica-1"]["image"]}
    *_, composed, remote = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    assert composed["services"]["mcp"]["image"] == COMPOSE["services"]["replica-1"]["image"]
    assert remote["mcpServers"]["files"]["url"].endswith(f":{PORT}/mcp")
