"""Answers of a Grafana with Prometheus and Loki, in the shapes of their references."""

from typing import Any

SOURCE = {"type": "prometheus", "uid": "prom1"}
TIMES = [1_760_000_000 + 60 * n for n in range(120)]
TEAMS = ("checkout", "search", "mail")


DASHBOARD = {
    "uid": "dash1",
    "title": "Requests",
    "schemaVersion": 41,
    "version": 7,
    "panels": [
        {
            "id": n,
            "type": "timeseries",
            "title": f"Requests of team {n}",
            "datasource": SOURCE,
            "gridPos": {"h": 8, "w": 12, "x": 0, "y": 8 * n},
            "fieldConfig": {"defaults": {"unit": "reqps", "custom": {"lineWidth": 1}}},
            "targets": [{"datasource": SOURCE, "expr": "sum(rate(requests[5m]))", "refId": "A"}],
        }
        for n in range(12)
    ],
}
SEARCH_HITS = [
    {
        "id": n,
        "uid": f"dash{n}",
        "title": f"Requests of team {n}",
        "uri": f"db/requests-of-team-{n}",
        "url": f"/d/dash{n}/requests-of-team-{n}",
        "type": "dash-db",
        "tags": ["http"],
        "folderUid": "folder3",
        "folderTitle": "Teams",
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
SOURCES = [
    {"id": 1, "uid": "prom1", "name": "Prometheus", "type": "prometheus", "isDefault": True},
    {"id": 2, "uid": "loki1", "name": "Loki", "type": "loki", "isDefault": False},
]
RANGE = "api/v1/query_range"
ANSWERS: dict[str, Any] = {
    "GET /api/dashboards/uid/dash1": {
        "meta": {"slug": "requests", "url": "/d/dash1/requests", "version": 7, "canEdit": True},
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
