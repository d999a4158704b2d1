"""Answers of Firecrawl's API, in the shapes of its reference (v2), about a made-up site."""

from typing import Any

# What some pages have, all of these have.
META = {
    "author": "Ann",
    "publishedTime": "2026-01-02T03:04:05Z",
    "modifiedTime": "2026-02-02T03:04:05Z",
    "numPages": 1,
    "error": None,
    "title": "Rate limits",
    "description": "How many requests a plan may send, and what happens beyond that.",
    "language": "en",
    "viewport": "width=device-width, initial-scale=1.0, maximum-scale=5.0",
    "theme-color": ["#ffffff", "#0a0a0a"],
    "generator": "Docs 4.2",
    "robots": "index, follow, max-image-preview:large",
    "keywords": "api, limits, quota",
    "ogTitle": "Rate limits",
    "og:title": "Rate limits",
    "ogDescription": "How many requests a plan may send, and what happens beyond that.",
    "og:description": "How many requests a plan may send, and what happens beyond that.",
    "ogImage": "https://docs.example.org/img/share.png?title=Rate%20limits&theme=dark",
    "og:image": "https://docs.example.org/img/share.png?title=Rate%20limits&theme=dark",
    "og:image:width": "1200",
    "og:image:height": "630",
    "og:type": "article",
    "og:site_name": "Example Docs",
    "twitter:card": "summary_large_image",
    "twitter:title": "Rate limits",
    "twitter:description": "How many requests a plan may send, and what happens beyond that.",
    "twitter:image": "https://docs.example.org/img/share.png?title=Rate%20limits&theme=dark",
    "msapplication-TileColor": "#0a0a0a",
    "favicon": "https://docs.example.org/favicon.svg",
    "proxyUsed": "basic",
    "cacheState": "hit",
    "cachedAt": "2026-10-02T08:00:00.000Z",
    "creditsUsed": 1,
    "concurrencyLimited": False,
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
        "description": "How many requests a plan may send, and what happens beyond that.",
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
