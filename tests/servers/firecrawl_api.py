"""Answers of Firecrawl's API, in the shapes of its reference (v2), about a made-up site."""

from typing import Any

ABOUT = "How many requests a plan may send, and what happens beyond that."
META = {
    "author": "Ann",
    "publishedTime": "2026-01-02T03:04:05Z",
    "modifiedTime": "2026-02-02T03:04:05Z",
    "numPages": 1,
    "language": "en",
    "error": None,
    "title": "Rate limits",
    "description": ABOUT,
    "ogTitle": "Rate limits",
    "og:description": ABOUT,
    "twitter:card": "summary_large_image",
    "contentType": "text/html; charset=utf-8",
}
LINE = "A plan of size {n} may send {n} requests each minute; see [plan {n}](https://docs.example.org/p/{n}).\n\n"


def page(number: int, lines: int = 30) -> dict[str, Any]:
    url = f"https://docs.example.org/limits/{number}"
    own = {"url": url, "sourceURL": url, "statusCode": 200, "scrapeId": f"0199-{number:04}"}
    text = "# Rate limits\n\n" + "".join(LINE.format(n=number + n) for n in range(lines))
    return {"markdown": text, "metadata": META | own}


def result(number: int) -> dict[str, Any]:
    return {
        "url": f"https://docs.example.org/limits/{number}",
        "title": f"Rate limits of plan {number}",
        "description": ABOUT,
        "position": number + 1,
    }


IMAGE = {"title": "A plan", "imageUrl": "https://docs.example.org/a.png", "position": 1}
ANSWERS: dict[str, Any] = {
    "POST /v2/scrape": {"success": True, "data": page(1, 120)},
    "POST /v2/map": {"success": True, "links": [result(n) for n in range(150)]},
    "POST /v2/search": {
        "success": True,
        "data": {
            "web": [result(n) | page(n) for n in range(5)],
            "news": [result(n) | {"snippet": "New", "date": "2 days ago"} for n in range(2)],
            "images": [IMAGE],
        },
        "creditsUsed": 7,
        "id": "0199-search",
    },
    "POST /v2/crawl": {"success": True, "id": "0199-crawl", "url": "https://api/v2/crawl/1"},
    "GET /v2/crawl/0199-crawl": {
        "success": True,
        "status": "completed",
        "completed": 12,
        "total": 12,
        "creditsUsed": 12,
        "expiresAt": "2026-12-01T00:00:00.000Z",
        "data": [page(n) for n in range(12)],
    },
}
