"""Answers of Supabase's Management API: rows of a query, log lines, advice on a database."""

from typing import Any

PROJECT = "/v1/projects/shop"


def orders() -> list[dict[str, Any]]:
    states = ["open", "paid", "shipped"]
    return [
        {
            "id": number,
            "number": f"SO-{number:06}",
            "status": states[number % 3],
            "total": f"{number * 7.13:.2f}",
            "created_at": "2026-01-02T03:04:05.678+00:00",
            "customer": {"id": number, "name": f"Customer {number}"},
            "note": None,
        }
        for number in range(60)
    ]


def log_line(number: int) -> dict[str, Any]:
    who = "user=authenticator database=postgres application_name=postgrest"
    return {
        "id": f"0199a1b2-{number:04}",
        "timestamp": 1_760_000_000_000_000 + number,
        "event_message": f"connection authorized: {who} {number}",
        "identifier": "abcdefghijkl",
        "error_severity": "LOG",
    }


def lint(number: int) -> dict[str, Any]:
    table = ["orders", "customers"][number % 2]
    return {
        "name": "auth_rls_initplan",
        "title": "Auth RLS Initialization Plan",
        "level": "WARN",
        "facing": "EXTERNAL",
        "categories": ["PERFORMANCE"],
        "description": "Detects if calls to `current_setting()` and `auth.<function>()` in RLS"
        " policies are being unnecessarily re-evaluated for each row",
        "detail": f"Table `public.{table}` has a row level security policy `own rows {number}` that"
        " re-evaluates current_setting() or auth.<function>() for each row. This produces"
        " suboptimal query performance at scale.",
        "remediation": "https://supabase.com/docs/guides/database/database-linter?lint=0003",
        "metadata": {"name": table, "type": "table", "schema": "public"},
        "cache_key": f"auth_rls_init_plan_public_{table}_own rows {number}",
    }


ANSWERS: dict[str, Any] = {
    f"POST {PROJECT}/database/query": orders(),
    f"GET {PROJECT}/analytics/endpoints/logs": {"result": [log_line(n) for n in range(60)]},
    f"GET {PROJECT}/advisors/performance": {"lints": [lint(n) for n in range(24)]},
    f"GET {PROJECT}/advisors/security": {"lints": []},
}
