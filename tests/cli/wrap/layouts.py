"""Random configurations in YAML and TOML: the layouts that people write, and what a server has."""

import json
from random import Random
from typing import Any

Entry = dict[str, Any]

WORDS = [
    "-y",
    "--x=1",
    "李 明",
    "#1",
    "a: b",
    "it's",
    "@x/y",
    "[z]",
    "ünï",
    "*",
    "&a",
    "%PATH%",
    "-",
]
REMARKS = ["args: [no]", "命令 cmd: 不", "'", '"', "- x", "{", "command = 1", "]]"]


class Layout:
    """Writes what a seed makes of it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._chance = self._random.random()

    def text(self, kind: str) -> tuple[bytes, dict[str, Entry]]:
        """Return a file of a client, and its servers by their names."""
        count = self._random.randint(1, 5)
        spell = {"goose": ("cmd", "envs", "uri"), "continue": ("command", "env", "url")}
        entries = {
            f"s{at}": self._entry(*spell.get(kind, spell["continue"])) for at in range(count)
        }
        if kind == "mistral-vibe":
            for entry in entries.values():
                entry["transport"] = "stdio" if "command" in entry else "http"
        lines = {"goose": self._goose, "continue": self._continue, "mistral-vibe": self._vibe}[
            kind
        ]({name: self._shuffled(entry) for name, entry in entries.items()})
        end = self._random.choice(["\n", "\r\n"])
        text = end.join(lines) + end * self._random.randint(0, 2)
        mark = "\ufeff" * (kind != "mistral-vibe" and self._random.random() < 0.2)
        return (mark + text).encode(), entries

    def _entry(self, command: str, env: str, url: str) -> Entry:
        words = self._random.choices(WORDS, k=self._random.randint(0, 3))
        variables = {key: self._random.choice(WORDS) for key in ("K", "L") if self._may()}
        entry: Entry = {command: self._random.choice(["npx", "/opt/我的/x", "x#y"]), "args": words}
        if self._may():
            number = self._random.randint(0, 9)
            key = {"X-Key": self._random.choice(WORDS)}
            entry = {url: f"http://127.0.0.1:1/{number}", "headers": key}
        elif self._may():
            del entry["args"]
        if self._may():
            entry[env] = variables
        return {**entry, "timeout": 30} if self._may() else entry

    def _may(self) -> bool:
        return self._random.random() < self._chance

    def _shuffled(self, entry: Entry) -> Entry:
        return {key: entry[key] for key in self._random.sample([*entry], len(entry))}

    def _remark(self) -> str:
        return f"{' ' * self._random.randint(1, 3)}# {self._random.choice(REMARKS)}"

    def _end(self) -> str:
        return self._remark() if self._may() else " " * self._random.randint(0, 1)

    def _between(self, apart: bool = True) -> list[str]:
        lines = [self._remark(), "", "  "]
        count = self._random.randint(0, 2) if apart and self._may() else 0
        return self._random.choices(lines, k=count)

    # YAML

    def _scalar(self, value: Any) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        plain = value[0].isalpha() and not set(value) & set("#:[]")
        styles = [json.dumps(value, ensure_ascii=False), "'" + value.replace("'", "''") + "'"]
        return self._random.choice([*styles, *[value] * 2 * plain])

    def _flow(self, value: Any) -> str:
        blank = " " * self._random.randint(0, 1)
        if isinstance(value, dict):
            members = [f"{key}: {self._flow(each)}" for key, each in value.items()]
            return f"{{{blank}{', '.join(members)}{blank}}}"
        if isinstance(value, list):
            return f"[{blank}{', '.join(map(self._flow, value))}{blank}]"
        return self._scalar(value)

    def _members(self, entry: Entry, lead: str) -> list[str]:
        lines: list[str] = []
        for key, value in entry.items():
            name = json.dumps(key) if self._random.random() < 0.2 else key
            blocks: list[str] = []
            if isinstance(value, list):
                dash = lead + " " * self._random.randint(0, 3) + "- "
                blocks = [f"{dash}{self._scalar(each)}{self._end()}" for each in value]
            elif isinstance(value, dict):
                blocks = self._members(value, lead + " " * self._random.randint(1, 4))
            if blocks and self._random.random() < 0.6:
                apart = key != "headers"  # which `wrap` takes out, with the remarks in them
                lines.append(f"{lead}{name}:{self._end() if apart else ''}")
                lines += [line for each in blocks for line in (*self._between(apart), each)]
            else:
                space = " " * self._random.randint(1, 3)
                lines += [f"{lead}{name}:{space}{self._flow(value)}{self._end()}"]
            lines += self._between()
        return lines

    def _goose(self, entries: dict[str, Entry]) -> list[str]:
        lines = ["GOOSE_MODEL: x", "extensions:", "  developer: {type: builtin, enabled: true}"]
        for name, entry in entries.items():
            if "headers" not in entry and self._random.random() < 0.2:
                lines.append(f"  {name}: {self._flow(entry)}{self._end()}")
            else:
                lines.append(f"  {name}:{self._end()}")
                lines += self._members(entry, "  " + " " * self._random.randint(1, 4))
        return [*lines, "last: |", "  text # no remark"]

    def _continue(self, entries: dict[str, Entry]) -> list[str]:
        lead = " " * self._random.randint(0, 3)
        lines = ["models: [&m {name: x}, *m]", "mcpServers:"]
        for name, entry in entries.items():
            if "headers" not in entry and self._random.random() < 0.2:
                lines.append(f"{lead}- {self._flow({'name': name, **entry})}{self._end()}")
                continue
            dash = "-" + " " * self._random.randint(1, 3)
            first = {"name": name} if "headers" in entry else {}
            members = self._members({**first, **entry, "name": name}, lead + " " * len(dash))
            members[0] = lead + dash + members[0].strip(" ")
            lines += members
        return lines

    # TOML

    def _inline(self, value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{key} = {self._inline(each)}" for key, each in value.items()]
            return f"{{ {', '.join(members)} }}" if members else "{}"
        if isinstance(value, list):
            return f"[{', '.join(map(self._inline, value))}]"
        if isinstance(value, str) and "'" not in value and self._may():
            return f"'{value}'"
        return json.dumps(value, ensure_ascii=False)

    def _vibe(self, entries: dict[str, Entry]) -> list[str]:
        if self._random.random() < 0.3:
            lines = [f"  {self._inline({'name': each, **entries[each]})},{self._end()}"
                     for each in entries]  # fmt: skip
            return [f"mcp_servers = [{self._remark()}", *lines, "]", "", "[other]", "x = 1"]
        lines = ["# Vibe", "active_model = 'x'"]
        for name, entry in entries.items():
            tables = [key for key in ("env", "headers") if entry.get(key) and self._may()]
            members = {"name": name, **{key: entry[key] for key in entry if key not in tables}}
            after_headers = lines[-2].startswith("[mcp_servers.headers]")
            lines += [*self._between(not after_headers), f"[[mcp_servers]]{self._end()}"]
            for key, value in self._shuffled(members).items():
                if key == "args" and value and self._may():
                    rows = [f"    {self._inline(each)},{self._end()}" for each in value]
                    lines += [f"{key} = [{self._end()}", *rows, "]"]
                else:
                    end = self._end() if key != "headers" else ""  # taken out, as above
                    lines.append(f"{key} = {self._inline(value)}{end}")
            for table in tables:
                lines += [f"[mcp_servers.{table}]"]
                lines += [f"{key} = {self._inline(each)}" for key, each in entry[table].items()]
        return [*lines, "", "[[models]]", "name = 'x'"]
