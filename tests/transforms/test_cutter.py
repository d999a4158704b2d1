import json
from typing import Any

from msgspec import Raw

from proxy.document.tree import Document
from proxy.transforms.cutter import SizeReducer


def cut(value: Any, room: int) -> tuple[Any, dict[str, str]]:
    raw = Document.read(json.dumps(value).encode()).encode()
    cutter = SizeReducer()
    fitted = cutter.fit(Raw(raw), room, ("", ""))
    assert fitted is not None
    assert len(bytes(fitted)) <= room
    return json.loads(bytes(fitted)), {cut.path: str(cut) for cut in cutter.cuts}


def test_short_strings_and_numbers_stay_whole_or_go() -> None:
    assert cut(["x" * 40, 10**30, "y" * 40], 80) == (["x" * 40, 10**30], {"@": "2 of 3"})


def test_members_share_what_small_ones_leave() -> None:
    found, told = cut({"a": "x" * 50, "b": "y" * 5000, "c": "z" * 5000}, 1000)
    assert found["a"] == "x" * 50
    assert abs(len(found["b"]) - len(found["c"])) < 5
    assert list(told) == ["b", "c"]


def test_a_record_keeps_all_its_names_even_in_little_room() -> None:
    found, _ = cut({f"n{n}": ["x" * 100] for n in range(20)}, 250)
    assert list(found) == [f"n{n}" for n in range(20)]


def test_a_map_of_like_members_keeps_some_whole_rather_than_crumbs_of_all() -> None:
    value = {f"n{n}": {"text": "x" * 300} for n in range(100)}
    found, told = cut(value, 3000)
    assert found == {name: value[name] for name in list(value)[: len(found)]}
    assert told == {"@": f"{len(found)} of 100 members"}


def test_a_large_element_is_cut_to_leave_room_for_the_next_ones() -> None:
    found, told = cut([["x" * 50] * 1000, 1, 2], 9000)
    assert 0 < len(found[0]) < 1000
    assert found[1:] == [1, 2]
    assert told == {"[]": f"{len(found[0])} of 1000"}


def test_a_text_that_is_only_spelled_in_many_bytes_stays_whole() -> None:
    cutter = SizeReducer()
    escaped = Raw(json.dumps("\u00e9" * 50).encode())
    fitted = cutter.fit(escaped, 110, ("", ""))
    assert fitted is not None
    assert json.loads(bytes(fitted)) == "\u00e9" * 50
    assert cutter.cuts == []


def test_a_tree_is_shown_as_deep_as_there_is_room() -> None:
    files = [{"name": f"file {n}", "type": "file"} for n in range(300)]
    folders = [{"name": f"folder {n}", "type": "directory", "children": files} for n in range(4)]
    raw = Document.read(json.dumps([*files[:10], *folders]).encode()).encode()
    fitted = SizeReducer(breadth=True).fit(Raw(raw), 4000, ("", ""))
    assert fitted is not None
    tree = json.loads(bytes(fitted))
    assert tree[:10] == files[:10]
    assert all(folder["children"][:10] == files[:10] for folder in tree[10:])
