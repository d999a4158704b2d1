"""Answers of a Grafana with Prometheus and Loki, in the shapes of their references."""

from typing import Any

SOURCE = {"type": "prometheus", "uid": "prom1"}
TIMES = [1_760_000_000 + 60 * n for n in range(120)]
TEAMS = ("checkout", "search", "mail")


def panel(number: int) -> dict[str, Any]:
    step = {"color": "green", "value": None}
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "auto"}
    return {
        "id": number,
        "type": "timeseries",
        "title": f"Requests of team {number}",
        "description": "How many requests a second.",
        "datasource": SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 0, "y": 8 * number},
        "fieldConfig": {
            "defaults": {
                "unit": "reqps",
                "color": {"mode": "palette-classic"},
                "custom": custom | {"thresholdsStyle": {"mode": "off"}},
                "mappings": [],
                "thresholds": {"mode": "absolute", "steps": [step, step | {"value": 80}]},
            },
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list"}, "tooltip": {"mode": "single"}},
        "pluginVersion": "12.1.0",
        "targets": [
            {
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": f'sum(rate(http_requests_total{{team="{number}"}}[5m]))',
                "legendFormat": "{{code}}",
                "range": True,
                "refId": "A",
            }
        ],
    }


DASHBOARD = {
    "uid": "dash1",
    "title": "Requests",
    "tags": ["http"],
    "time": {"from": "now-6h", "to": "now"},
    "timezone": "browser",
    "schemaVersion": 41,
    "version": 7,
    "refresh": "1m",
    "editable": True,
    "graphTooltip": 0,
    "annotations": {"list": [{"builtIn": 1, "enable": True, "name": "Annotations & Alerts"}]},
    "templating": {"list": [{"name": "team", "type": "query", "query": "label_values(team)"}]},
    "panels": [panel(n) for n in range(12)],
}
SEARCH_HITS = [
    {
        "id": n,
        "orgId": 1,
        "uid": f"dash{n}",
        "title": f"Requests of team {n}",
        "uri": f"db/requests-of-team-{n}",
        "url": f"/d/dash{n}/requests-of-team-{n}",
        "slug": "",
        "type": "dash-db",
        "tags": ["http"],
        "isStarred": False,
        "sortMeta": 0,
        "folderId": 3,
        "folderUid": "folder3",
        "folderTitle": "Teams",
        "folderUrl": "/dashboards/f/folder3/teams",
    }
    for n in range(30)
]
SERIES = [
    {
        "metric": {"__name__": "http_requests_total", "team": team, "code": "200"},
        "values": [[time, str(n * 1.5)] for n, time in enumerate(TIMES)],
    }
    for team in TEAMS
]
STREAMS = [
    {
        "stream": {
            "team": team,
            "namespace": "shop",
            "pod": f"{team}-7d9c5b6f4-x2k8p",
            "filename": f"/var/log/pods/shop_{team}-7d9c5b6f4-x2k8p/{team}/0.log",
            "service_name": team,
            "__stream_shard__": "0",
        },
        "values": [
            [f"{time}000000000", f'level=warn msg="retry {n} of the queue" took={n}ms']
            for n, time in enumerate(TIMES[:25])
        ],
    }
    for team in TEAMS
]
META = {"slug": "requests", "url": "/d/dash1/requests", "version": 7, "folderUid": "folder3"}
SOURCES = [
    {"id": 1, "uid": "prom1", "name": "Prometheus", "type": "prometheus", "isDefault": True},
    {"id": 2, "uid": "loki1", "name": "Loki", "type": "loki", "isDefault": False},
]
RANGE = "api/v1/query_range"
ANSWERS: dict[str, Any] = {
    "GET /api/dashboards/uid/dash1": {
        "meta": META | {"canSave": True, "canEdit": True, "canAdmin": True, "canStar": True},
        "dashboard": DASHBOARD,
    },
    "GET /api/search": SEARCH_HITS,
    "GET /api/datasources": SOURCES,
    "GET /api/datasources/uid/prom1": SOURCES[0],
    "GET /api/datasources/uid/loki1": SOURCES[1],
    f"POST /api/datasources/uid/prom1/resources/{RANGE}": {
        "status": "success",
        "data": {"resultType": "matrix", "result": SERIES},
    },
    f"GET /api/datasources/proxy/uid/loki1/loki/{RANGE}": {
        "status": "success",
        "data": {"resultType": "streams", "result": STREAMS},
    },
}
