"""`python -m tests.clients.trial WHEEL`: a new user's first minute, with Claude Code.

From `uvx --from WHEEL mcp-abridge wrap` with an empty cache to the first answer of a filesystem
server that is cut, and the next look at it. Needs uvx. Ends with 1 if that fails or takes longer.
"""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import servers
from tests.clients.install import install
from tests.clients.model import VIEW, Model, Step, unescaped
from tests.clients.programs import ClaudeCode, Place, write
from tests.clients.users import User

SECONDS = 60


def main(wheel: Path, folder: Path) -> int:
    client, user = ClaudeCode(), User(folder, program=False)
    install(client.name, os.environ)
    for number in range(1000):
        write(user.cwd / "files" / f"folder {number % 20}" / f"file {number}.txt", "-")
    user.env = {**os.environ, **user.env, "UV_CACHE_DIR": str(folder / "cache")}
    user.env.pop("PYTHONPATH", None)
    plan = [Step("directory_tree", {"path": str(user.cwd / "files")})]
    with Model([*plan, Step("directory_tree", further=True)]) as model:
        place = Place(model.url, user.home, user.cwd, servers.filesystem(user.cwd / "files"))
        start, more = client.configure(place)
        user.env |= more
        start_time = time.monotonic()
        print(user.types("uvx", "--from", str(wheel), "mcp-abridge", "wrap", "--all"))
        wrapped = time.monotonic()
        output = user.types(*start)
        seconds = time.monotonic() - start_time
    texts = [each.text for each in model.results]
    print(output, *(f"{text[:300]} ... {text[-300:]}" for text in texts), sep="\n")
    print(f"wrapped after {wrapped - start_time:.1f} s, the next look after {seconds:.1f} s")
    works = len(texts) == 2 and VIEW.search(unescaped(texts[0])) and texts[1] not in texts[0]
    return int(not works or seconds > SECONDS)


if __name__ == "__main__":
    with TemporaryDirectory(prefix="trial-") as temporary:
        sys.exit(main(Path(sys.argv[1]).resolve(), Path(temporary)))
