"""Answers of the Kubernetes API: discovery, pods as objects and as a table, events, a log."""

from typing import Any

WHEN = "2026-01-02T03:04:05Z"


def answer(path: str) -> Any:
    """Answer for a path of the API; there is one namespace with pods, and one without."""
    match path.partition("?")[0].split("/")[1:]:
        case ["version"]:
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        case ["api", "v1"]:
            return resources()
        case ["api", "v1", "pods"] | ["api", "v1", "namespaces", "shop", "pods"]:
            return table(120)
        case ["api", "v1", "namespaces", _, "pods"]:
            return table(0)
        case ["api", "v1", "namespaces", "shop", "pods", name]:
            return pod(name)
        case ["api", "v1", "namespaces", "shop", "pods", _, "log"]:
            lines = (f"{WHEN} INFO request {n} of the shop took {n} ms\n" for n in range(400))
            return "".join(lines).encode()
        case ["api", "v1", "events"] | ["api", "v1", "namespaces", "shop", "events"]:
            events = [event(n) for n in range(60)]
            return {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": events}
        case ["api", "v1", "namespaces", _, "events"]:
            return {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []}
    return None


def resources() -> dict[str, Any]:
    kinds = {"pods": ("Pod", True), "events": ("Event", True), "namespaces": ("Namespace", False)}
    verbs = ["get", "list", "create", "delete"]
    return {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": name, "singularName": "", "kind": kind, "namespaced": inside, "verbs": verbs}
            for name, (kind, inside) in kinds.items()
        ],
    }


def table(rows: int) -> dict[str, Any]:
    names = ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node"]
    names.append("Readiness Gates")
    columns = [
        {"name": name, "type": "string", "format": "", "description": "", "priority": place // 5}
        for place, name in enumerate(names)
    ]
    others = ["<none>", "<none>"]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "1"},
        "columnDefinitions": columns,
        "rows": [
            {"cells": [name, *state(n), *others], "object": pod(name)}
            for n, name in enumerate(f"shop-{n:03}-7d9c" for n in range(rows))
        ],
    }


def state(n: int) -> list[Any]:
    status = "CrashLoopBackOff" if n % 20 == 7 else "Running"
    return [f"{int(n % 20 != 7)}/1", status, n % 3, "7d", f"10.0.0.{n}", f"node-{n % 4}.shop.test"]


def pod(name: str) -> dict[str, Any]:
    owned: dict[str, Any] = {"f:metadata": {"f:labels": {f"f:label-{n}": {} for n in range(20)}}}
    writer = {"manager": "kubelet", "operation": "Update", "time": WHEN, "fieldsType": "FieldsV1"}
    labels = {"app": "shop", "pod-template-hash": "7d9c", "app.kubernetes.io/name": "shop"}
    last = {"kubectl.kubernetes.io/last-applied-configuration": '{"kind":"Pod"}' * 40}
    env = [{"name": f"LAMP_{n}", "value": f"{n}.90"} for n in range(40)]
    container = {"name": "shop", "image": "shop:7", "env": env}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": "0f1e2d3c-0000-4000-8000-000000000007",
            "resourceVersion": "817",
            "creationTimestamp": WHEN,
            "labels": labels,
            "annotations": last,
            "managedFields": [{**writer, "fieldsV1": owned} for _ in range(3)],
        },
        "spec": {"nodeName": "node-one.shop.test", "containers": [container]},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": WHEN}],
            "containerStatuses": [{"name": "shop", "ready": True, "restartCount": 0}],
        },
    }


def event(n: int) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"shop.{n}", "namespace": "shop", "creationTimestamp": WHEN},
        "involvedObject": {"kind": "Pod", "name": f"shop-{n:03}-7d9c", "namespace": "shop"},
        "reason": "BackOff",
        "message": f"Back-off restarting failed container shop in pod shop-{n:03}-7d9c",
        "type": "Warning",
        "lastTimestamp": WHEN,
    }
