import re
from pathlib import Path

import pytest
from msgspec import Struct

from proxy.ruleset.loading.convert import fields
from proxy.transforms import TRANSFORMS
from tests.reference import rules_page as reference

ROOT = Path(__file__).resolve().parents[2]
PAGE = reference.page()


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n### {title}\n")
    return re.split(r"\n##+ ", rest)[0]


def test_the_page_in_the_repository_is_the_one_that_the_code_prints() -> None:
    kept = (ROOT / "rules" / "REFERENCE.md").read_text()
    remedy = "write it anew: mcp-abridge schema --reference > rules/REFERENCE.md"
    assert kept == PAGE, remedy


@pytest.mark.parametrize(("title", "kind", "_"), reference.KEYS)
def test_every_key_has_its_section(title: str, kind: type[Struct], _: str) -> None:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    found = re.findall(r"^### (\w+)\n\n\S", rest.partition("\n## ")[0], re.MULTILINE)
    assert found == list(fields(kind))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_option_of_a_transform_stands_in_its_table_with_a_description(name: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.*) \| (.+) \|$", section(name), re.MULTILINE)
    described = {word for word, value, _, said in rows if value and said}
    assert set(fields(TRANSFORMS[name])) <= described


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_has_an_example(name: str) -> None:
    assert "\nExample" in section(name)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_says_what_becomes_of_a_schema(name: str) -> None:
    assert "\nWhat becomes of an `outputSchema`: " in section(name)


def test_every_link_leads_to_one_title() -> None:
    titles = [reference.anchor(title) for title in re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)]
    links = set(re.findall(r"\]\(#([^)]+)\)", PAGE))
    # Of several titles of one name, a link leads to the first alone.
    assert {link: titles.count(link) for link in links} == dict.fromkeys(links, 1)


def test_lines_are_short_but_for_tables_and_code() -> None:
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []


def test_a_type_without_words_is_an_error() -> None:
    with pytest.raises(TypeError, match="no words for"):
        reference.words(object)
