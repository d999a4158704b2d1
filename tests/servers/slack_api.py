"""Answers of the Web API of Slack: people, channels, messages of a channel, groups."""

from typing import Any

WHEN = 1_760_400_000
PEOPLE = {"U01ANN": "ann", "U02BEN": "ben", "U03CYN": "cyn"}


def answer(path: str) -> Any:
    """Answer for a method of the API; there are 60 channels, and one has 45 messages."""
    method = path.partition("?")[0].rpartition("/")[2]
    if method not in METHODS:
        return {"ok": False, "error": "unknown_method"}
    return {"ok": True, **METHODS[method]}


def person(number: int) -> dict[str, Any]:
    key = [*PEOPLE][number]
    name = PEOPLE[key]
    profile = {"real_name": f"{name.title()} Example", "display_name": name}
    profile["email"] = f"{name}@example.org"
    return {"id": key, "team_id": "T01", "name": name, "profile": profile} | {
        "real_name": profile["real_name"]
    }


def channel(number: int) -> dict[str, Any]:
    about = f"What team {number} plans, builds and ships; releases are on Tuesdays. " * 3
    return {
        "id": f"C{number:08}",
        "name": f"team-{number}",
        "name_normalized": f"team-{number}",
        "is_channel": True,
        "num_members": 3 + number,
        "topic": {"value": about},
        "purpose": {"value": about},
    }


def message(number: int) -> dict[str, Any]:
    address = f"https://git.example.org/r/{number}"
    text = f"Message {number}: the build of release {number} is green, see <{address}>"
    if number % 9 == 4:
        text = " ".join(f"step {step} left {step} rows;" for step in range(90))
    account: dict[str, Any] = {
        "type": "message",
        "user": [*PEOPLE][number % 3],
        "text": text,
        "ts": f"{WHEN + number}.{number:06}",
    }
    if number % 9 == 0:
        account["reactions"] = [{"name": "thumbsup", "count": 2, "users": ["U01ANN", "U02BEN"]}]
    if number % 9 == 1:
        file = {"id": f"F{number:05}", "name": "a.log", "mimetype": "text/plain"}
        account["files"] = [file]
    return account


METHODS: dict[str, dict[str, Any]] = {
    "auth.test": {
        "url": "https://shop.slack.com/",
        "team": "Shop",
        "user": "ann",
        "team_id": "T01",
        "user_id": "U01ANN",
    },
    "users.list": {"members": [person(number) for number in range(3)]},
    "client.userBoot": {"ims": [], "channels": []},
    "conversations.list": {"channels": [channel(number) for number in range(60)]},
    "conversations.history": {
        "messages": [message(number) for number in range(45)],
        "has_more": True,
        "response_metadata": {"next_cursor": "bmV4dF90czoxNzYwNDAwMDAw"},
    },
    "conversations.replies": {"messages": [message(number) for number in range(3)]},
    "users.conversations": {"channels": [channel(1)]},
    "conversations.info": {
        "channel": {**channel(1), "unread_count": 3, "last_read": f"{WHEN}.000000"}
    },
    "search.all": {
        "messages": {
            "total": 45,
            "matches": [
                {**message(number), "channel": {"id": "C00000001", "name": "team-1"}}
                for number in range(45)
            ],
            "paging": {"count": 45, "total": 45, "page": 1, "pages": 1},
        }
    },
    "usergroups.list": {
        "usergroups": [{"id": "S01", "name": "Shop", "handle": "shop", "user_count": 3}]
    },
}
