"""Images, sounds and files in results: what stands for them, and views that ask for them."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.clients import CLIENTS
from mcp_abridge.shaping.job import Drawing
from mcp_abridge.shaping.pipeline import shape
from PIL import Image

from tests.builders import result, rule, texts
from tests.pictures.results import (
    blocks,
    image,
    job,
    link,
    resource,
    view,
)
from tests.pictures.samples import file

SMALL = file(Image.new("RGB", (1568, 20), "red"), "PNG")
LARGE = file(Image.new("RGB", (1569, 20), "red"), "PNG")
PDF = b"%PDF-1.4\n" + bytes(range(256)) * 230
TEXT = {"type": "text", "text": "A caption."}
AS_TEXT: dict[str, Any] = {"base64": ("image", "audio", "resource")}


@pytest.mark.parametrize("options", [{}, AS_TEXT])
def test_what_fits_passes_byte_for_byte(options: dict[str, Any]) -> None:
    own = job(TEXT, image(SMALL), resource(b"%PDF-1.4", "application/pdf"), link(1), **options)

    outcome = shape(own)

    assert outcome.raw is own.raw
    assert (outcome.outcome, outcome.drawings, outcome.snapshot) == ("untouched", (), None)


def test_large_images_are_listed_for_the_transport_and_named_in_their_order() -> None:
    embedded = resource(LARGE, "image/png")
    own = job(image(LARGE), TEXT, image(SMALL), resource(PDF[:90], "image/png"), embedded)

    outcome = shape(own)

    assert outcome.drawings == (Drawing(0, "image(0)"), Drawing(4, "image(2)"))
    assert outcome.raw is own.raw  # without the extra, that is sent


def test_an_image_is_large_by_its_bytes_too() -> None:
    noise = file(Image.effect_noise((1100, 1000), 90), "PNG")
    assert len(noise) > 1_000_000

    assert shape(job(image(noise))).drawings == (Drawing(0, "image(0)"),)


SIZES = ((1569, 4), (4, 1569))


@pytest.mark.parametrize(
    ("form", "transparent"),
    [("PNG", True), ("JPEG", False), ("GIF", False), ("WEBP", False), ("WEBP", True)],
)
def test_the_pixels_are_told_by_the_head_of_the_file(form: str, transparent: bool) -> None:
    wide, high = (Image.new("RGBA" if transparent else "RGB", size) for size in SIZES)

    for picture in (wide, high):
        assert shape(job(image(file(picture, form, lossless=transparent)))).drawings


def test_the_bytes_that_a_model_reads_are_those_of_texts_and_of_base64_that_is_shown() -> None:
    pixels, sound = image(SMALL), {"type": "audio", "data": "UklGRg" + "ab" * 10_000}

    alone, beside, alike = (shape(job(*each)) for each in ((pixels,), (TEXT, pixels), (sound,)))
    with_sound = shape(job(TEXT, sound, base64=("audio",)))

    sizes = [
        (each.visible_before, each.visible_after) for each in (alone, beside, alike, with_sound)
    ]
    assert sizes == [(0, 0), (10, 10), (0, 0), (10 + 20_006, 10)]


def test_a_rule_says_that_images_pass_as_they_came() -> None:
    own = job(image(LARGE * 90), rule=rule("max_bytes: 1000\nimages: false"), **AS_TEXT)

    outcome = shape(own)

    assert outcome.raw is own.raw
    assert not outcome.drawings


def test_a_rule_that_only_measures_changes_no_image() -> None:
    measuring = rule("mode: shadow\nmax_bytes: 1000")
    own = job(image(LARGE), resource(PDF, "application/pdf"), rule=measuring)

    outcome = shape(own)

    assert (outcome.raw, outcome.drawings) == (own.raw, ())
    assert outcome.visible_after == outcome.visible_before == 0


def test_a_file_becomes_a_note_on_its_type_and_size_and_a_view_gives_it_as_it_came() -> None:
    content = resource(PDF, "application/pdf", "file:///docs/a.pdf")
    own = job(TEXT, content, base64=("resource",))

    first, block = blocks(shape(own))

    assert first == TEXT
    note = "[PDF, 58,889 bytes of base64 data left out; call again with view='blob(0)' for it]"
    inner = {"uri": "file:///docs/a.pdf", "mimeType": "text/plain", "text": note}
    assert block == {"type": "resource", "resource": inner}
    assert blocks(view(own, "blob(0)")) == [content]
    assert texts(view(own, "text").raw) == ["A caption."]


def test_a_sound_becomes_a_note() -> None:
    sound = {"type": "audio", "data": "UklGRg" + "ab" * 10_000, "mimeType": "audio/wav"}

    [block] = blocks(shape(job(sound, keep=False, base64=("audio",))))

    assert block == {"type": "text", "text": "[audio/wav, 15,004 bytes of base64 data left out]"}


def test_a_client_that_shows_base64_as_text_gets_a_note_in_place_of_an_image() -> None:
    noise = file(Image.effect_noise((200, 100), 90), "PNG")
    own = job(TEXT, image(noise), **AS_TEXT)

    outcome = shape(own)

    [_, block] = blocks(outcome)
    assert block["text"].startswith("[PNG image, 200 x 100 pixels, ")
    assert not outcome.drawings
    assert blocks(view(own, "image(0)")) == [image(noise)]
    assert shape(job(TEXT, image(noise))).outcome == "untouched"


def test_a_client_that_saves_files_or_has_its_model_read_them_gets_them_as_they_came() -> None:
    own = job(TEXT, resource(PDF, "application/pdf"))

    assert shape(own).raw is own.raw


def test_an_image_in_a_resource_is_an_image_where_only_those_are_seen() -> None:
    noise = file(Image.effect_noise((200, 100), 90), "PNG")
    own = job(TEXT, resource(noise, "image/x-png"), base64=("audio", "resource"))

    assert blocks(shape(own)) == [TEXT, image(noise)]
    assert blocks(view(own, "image(0)")) == [image(noise)]


def test_no_client_is_said_to_show_images_as_base64_unless_it_was_measured() -> None:
    assert all(each.measured for each in CLIENTS if "image" in each.base64)


def test_a_view_of_something_else_repeats_no_image() -> None:
    long = "".join(f"line {n}\n" for n in range(5_000))
    own = job({"type": "text", "text": long}, image(LARGE))

    assert {each["type"] for each in blocks(view(own, "head(2)"))} == {"text"}


@pytest.mark.parametrize("text", ["A failure.", "a line of it\n" * 3_000])
def test_in_an_error_too_no_base64_takes_the_room_of_all_answers(text: str) -> None:
    noise = file(Image.effect_noise((200, 100), 90), "PNG")
    failure = {"type": "text", "text": text}
    own = job(failure, image(noise), resource(PDF, ""), result={"isError": True}, **AS_TEXT)

    outcome = shape(own)

    *_, picture, pdf = blocks(outcome)
    assert picture["text"].startswith("[PNG image, 200 x 100 pixels, ")
    assert pdf["resource"]["text"].startswith("[PDF, 58,889 bytes of ")
    assert (outcome.outcome, result(outcome.raw)["isError"]) == ("error", True)
    assert blocks(view(own, "image(0)")) == [image(noise)]
    assert texts(view(own, "text[0:4]").raw)[0] == text[:4]


def test_a_first_call_may_ask_for_an_image_and_everything_is_kept() -> None:
    own = job(TEXT, image(SMALL), view="image(0)")

    outcome = shape(own)

    assert blocks(outcome) == [image(SMALL)]
    assert outcome.outcome == "view"
    assert outcome.snapshot is not None


def test_an_error_stays_an_error_if_a_first_call_asks_for_an_image() -> None:
    own = job(TEXT, result={"isError": True}, view="image(0)")

    assert result(shape(own).raw) == {"content": [TEXT], "isError": True}


def test_a_result_with_an_image_alone_says_in_views_what_it_has() -> None:
    outcome = view(job(image(LARGE)), "all")

    assert texts(outcome.raw)[0].startswith("image(0): [PNG image, 1569 x 20 pixels, ")


def test_clients_that_want_structured_content_get_some_beside_an_image() -> None:
    own = job(image(LARGE), result={"structuredContent": {"ok": True}})

    assert result(view(own, "image(0)").raw)["structuredContent"] == {"view": "image(0)"}


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("image(1)", "view: there is no image(1): the answer has image(0), blob(0)"),
        ("image(0, 5)", "view: 'image(0, 5)' is no question; write image(0), image(0, [x, y, "
         "width, height]) for a part of it, or blob(0)"),
        ("blob(0, [0, 0, 1, 1])", "view: 'blob(0, [0, 0, 1, 1])' is no question; write image(0), "
         "image(0, [x, y, width, height]) for a part of it, or blob(0)"),
    ],
)  # fmt: skip
def test_a_view_that_names_no_image_is_refused_with_what_there_is(
    expression: str, reason: str
) -> None:
    outcome = view(job(image(LARGE), resource(PDF, "application/pdf")), expression)

    assert texts(outcome.raw) == [reason]
    assert result(outcome.raw)["isError"] is True


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "image", "data": 7},
        {"type": "image", "data": "%%%%"},
        {"type": "image", "data": "iVBORw0KGgo"},
        {"type": "image", "data": "", "mimeType": ["image/png"]},
        {"type": "resource", "resource": {"uri": "a", "blob": None}},
        {"type": "resource", "resource": "text"},
        {"data": "iVBORw0KGgo="},
    ],
)
def test_a_block_that_breaks_the_protocol_passes(block: dict[str, object]) -> None:
    own = job(block, image(LARGE))

    assert shape(own).raw is own.raw
    assert [each.index for each in shape(own).drawings] == [1]


def test_links_that_are_too_many_are_rows_in_brief_and_views_have_them_all() -> None:
    own = job(TEXT, *map(link, range(300)))

    outcome = shape(own)

    caption, rows = texts(outcome.raw)
    assert caption == "A caption."
    assert len(outcome.raw) < 10_000 < len(own.raw or b"")
    table = json.loads(rows)
    assert table["same"] == {"type": "resource_link"}
    assert table["rows"][0][table["columns"].index("uri")] == "file:///docs/0.md"
    whole = [
        each
        for start in range(0, 300, 30)
        for each in json.loads(texts(view(own, f"[{start}:{start + 30}]").raw)[1])["view"]
    ]
    assert whole == [link(number) for number in range(300)]


def test_links_within_the_budget_stay_links() -> None:
    own = job(TEXT, *map(link, range(20)))

    assert shape(own).raw is own.raw
