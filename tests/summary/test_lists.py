"""Lists of many kinds of servers: each look shows the column for which one reads the list."""

import json
from typing import Any

import pytest
from mcp_abridge.document.tokens import tokens
from mcp_abridge.document.tree import Document
from mcp_abridge.query.call import Call
from mcp_abridge.query.view import look as view_of
from mcp_abridge.summary.abridgement import abridge, examples_of
from mcp_abridge.summary.structure_in_text import read_structure

from tests.summary.lists import LISTS, PEOPLE, WORDS, Dice, Listing, listing, shows

Rows = list[dict[str, Any]]

LOOK = 4500


def look(
    each: Listing, name: str = "list", bound: int = LOOK, structured: bool = False
) -> tuple[Document, Call]:
    call = Call(name, each.arguments, bound=bound, notices=[], viewable=True, structured=structured)
    document = Document(each.value)
    if not isinstance(each.value, str):
        document = Document.read(json.dumps(each.value).encode())
    read_structure(document, call.fuel)
    abridge(document, bound, call)
    return document, call


def first_look(rows: Any, bound: int = LOOK) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return rows in brief, and the notes on them."""
    document, call = look(Listing(rows, ()), bound=bound)
    value = json.loads(document.encode())
    return value, call.notices[0].value if call.notices else value.pop("_abridged")


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_shows_the_column_for_which_one_reads_it(name: str, structured: bool) -> None:
    each = listing(name)
    document, _ = look(each, structured=structured)
    whole = json.loads(document.encode())

    assert any(shows(whole, column) for column in each.names)
    if not structured:
        assert [column for column in each.others if not shows(whole, column)] == []


def test_a_text_that_the_call_looks_for_is_cut_around_the_match() -> None:
    rows = [
        {"id": n, "path": f"src/{n}.py", "text": f"{'x ' * n} needle {'y ' * 90}"}
        for n in range(90)
    ]
    document, _ = look(Listing(rows, ("text",), arguments={"query": "Needle"}))
    table = json.loads(document.encode())
    texts = [row[table["columns"].index("text")] for row in table["rows"]]
    assert len(texts) > 20
    assert all("needle" in text and text.endswith("…") for text in texts)


def test_texts_that_are_cut_alike_around_the_match_stay_so() -> None:
    around = f"{'x ' * 50} the needle is here {'y ' * 50}"
    rows = [{"id": n, "size": n * n, "text": f"{around} end {n}"} for n in range(90)]
    document, _ = look(Listing(rows, ("text",), arguments={"query": "Needle"}))
    table = json.loads(document.encode())
    texts = [row[table["columns"].index("text")] for row in table["rows"]]
    assert len(texts) > 20
    assert all("needle" in text for text in texts)


def test_a_map_of_like_records_is_shown_as_rows_by_what_names_them() -> None:
    records = {
        f"38{n}": {"pubdate": "2026", "source": "BMJ", "pages": f"{n}-9", "title": f"Trial {n}"}
        | {f"detail{i}": "x" * 40 for i in range(9)}
        for n in range(40)
    }
    document, _ = look(Listing({"result": records}, ()), bound=2000)
    table = json.loads(document.encode())["result"]
    assert table["columns"] == ["key", "value.title", "value.pages"]
    assert len(table["rows"]) == 40


def sentence(number: int) -> str:
    return f"The {WORDS[number % 24]} of {WORDS[number * 7 % 23]} {number}"


def test_the_rows_of_a_map_are_named_by_its_keys() -> None:
    paths = {
        f"/v2/ports/{{port_id}}/vessels/{number}/manifests": {
            "post": {"summary": sentence(number), "tags": ["ports"], "deprecated": number % 3 == 0}
        }
        for number in range(200)
    }
    document, _ = look(Listing({"paths": paths}, ()))
    table = json.loads(document.encode())["paths"]
    assert table["columns"][0] == "key"
    assert len({row[0] for row in table["rows"]}) == len(table["rows"])


def test_an_attachment_does_not_name_its_record() -> None:
    records = [
        {
            "id": f"rec{number:04}",
            "fields": {
                "Artwork": sentence(number),
                "Images": [{"id": f"att{number:04}", "filename": f"{number * 7919:06x}.jpg"}],
                "Medium": ("ink", "oil", "paper")[number % 3],
            },
        }
        for number in range(300)
    ]
    document, _ = look(Listing({"records": records}, ()))
    columns = json.loads(document.encode())["records"]["columns"]
    assert "fields.Artwork" in columns[:2]
    assert "fields.Images[0].filename" not in columns[:2]


def columns_of_look(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    table = json.loads(look(Listing(rows, ()))[0].encode())
    cells = zip(*table["rows"], strict=True)
    return dict(zip(table["columns"], map(list, cells), strict=True))


def test_rows_that_nothing_names_are_told_apart_by_the_beginnings_of_their_hashes() -> None:
    dice = Dice(1)
    rows: list[dict[str, Any]] = [
        {
            "txid": dice.hex(64),
            "version": 2,
            "size": dice.randint(190, 2000),
            "outputs": [
                {"script": f"OP_0 PUSH_20 {dice.hex(40)}", "to": f"bc1q{dice.hex(38)}"}
                for _ in range(2)
            ],
            "fee": dice.randint(200, 90_000),
        }
        for _ in range(60)
    ]
    table = columns_of_look(rows)
    assert table["txid"] == [f"{row['txid'][:12]}…" for row in rows]
    assert not any(name.startswith("outputs") for name in [*table][:2])


def test_words_name_rows_in_any_language_though_numbers_tell_more_of_them_apart() -> None:
    dice = Dice(1)
    rows = [
        {
            "besök": f"Besök/{dice.randint(100_000, 999_999)}",
            "källa": f"#{dice.hex(16)}",
            "läkare": f"Läkare/{dice.randint(1000, 9999)}",
            "prov": f"{dice.choice(('Kalium', 'Järn', 'Puls'))}-{dice.choice(WORDS)}",
            "mängd": dice.randint(1, 99),
        }
        for _ in range(90)
    ]
    assert "prov" in [*columns_of_look(rows)][:2]


def test_a_share_says_more_of_a_row_than_its_counts() -> None:
    dice = Dice(1)
    rows: list[dict[str, Any]] = []
    for number in range(90):
        counts = {f"{word}_{part}": dice.randint(1, 99) for word in WORDS[:6] for part in "abc"}
        share = {"used_percent": dice.randint(0, 9999) / 100}
        rows.append({"path": f"src/{dice.choice(WORDS)}_{number}.py", **counts, **share})
    document, _ = look(Listing(rows, ()))
    assert json.loads(document.encode())["columns"][:2] == ["path", "used_percent"]


def test_of_two_names_that_are_as_good_both_are_shown_and_the_second_is_cut() -> None:
    dice = Dice(1)
    rows = [
        {f"key{number}": dice.randint(1, 9999) for number in range(20)}
        | {"localName": dice.words(2, 2), "scientificName": f"{dice.words(2, 2)} Linnaeus, 1758"}
        for _ in range(78)
    ]
    table = columns_of_look(rows)
    assert len(table["localName"]) >= 30
    assert len(set(table["scientificName"])) > len(table["localName"]) / 2


def test_digits_get_fewer_bytes_than_words_so_that_a_look_takes_as_many_tokens() -> None:
    def look_of(name: str) -> tuple[int, int]:
        rows = [{"name": name.replace("N", f"{n * 7919 % 9973}"), "n": n} for n in range(2000)]
        document = Document.read(json.dumps({"rows": rows}).encode())
        call = Call("list", bound=10_000, notices=[], viewable=True)
        abridge(document, 10_000, call, first_look=2000)
        return len(document.encode()), tokens(document.encode().decode())

    (words, words_tokens), (digits, digits_tokens) = map(look_of, ("the owner of N", "N.N.N.N"))
    assert digits < 0.8 * words
    assert 0.8 * words_tokens < digits_tokens < 1.2 * words_tokens < 1600


def test_rare_values_are_told_with_their_counts_and_where_they_are() -> None:
    rows = [{"name": f"job {n}", "status": "ok", "zone": "eu"} for n in range(1000)]
    rows[900]["status"] = "FAILED"
    document, _ = look(Listing(rows, ("name",)))
    table = json.loads(document.encode())
    assert table["same"] == {"zone": "eu"}
    assert table["counts"] == {"status": {"ok": 999, "FAILED": "1 at [900]"}}


def test_a_filter_that_finds_few_rows_shows_them_whole() -> None:
    rows = [{"id": n, "kind": "ab"[n % 2], "status": "ok", "note": f"note {n}"} for n in range(900)]
    rows[700]["status"] = "FAILED"
    assert examples_of(Document(rows), Call("list"))[0] == "[?status=='FAILED']"
    del rows[700]
    assert examples_of(Document(rows), Call("list"))[0] == "[?kind=='a'].[id, note]"


def test_the_value_beside_a_name_is_a_column_by_that_name() -> None:
    rows = [
        {
            "id": f"{n * 7919:x}",
            "address": f"10.0.0.{n}",
            "tags": [{"Key": "Title", "Value": f"host {n}"}, {"Key": "Env", "Value": "prod"}],
        }
        for n in range(90)
    ]
    document, _ = look(Listing(rows, ()))
    assert "tags[?Key=='Title'].Value | [0]" in json.loads(document.encode())["columns"]


def test_values_beside_a_name_are_counted_and_filtered() -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": f"host {n}",
            "zone": "a",
            "tags": [
                {"Key": "team", "Value": ("core", "data")[n % 3 % 2]},
                {"Key": "n", "Value": n},
            ],
        }
        for n in range(90)
    ]
    of_team = "tags[?Key=='team'].Value | [0]"
    filters, counts = examples_of(Document(rows), Call("list"))[:2]
    assert (filters, counts) == (f"[?({of_team})=='data'].[name]", f"count_by(@, &{of_team})")
    assert view_of(Document(rows), counts) == {"core": 60, "data": 30}
    assert len(view_of(Document(rows), filters)) == 30

    rows[70]["zone"] = "b"  # the look tells all of it
    filters, counts = examples_of(Document(rows), Call("list"))[:2]
    assert (filters, counts) == ("[?zone=='b']", f"count_by(@, &{of_team})")


def test_values_beside_a_name_are_columns_though_they_have_a_type_and_more_beside_them() -> None:
    cells = [("status", "color", ["Done", "Stuck", "New"]), ("cost", "numbers", range(90))]
    board = [
        {
            "name": f"item {n}",
            "column_values": [
                {
                    "id": key,
                    "type": kind,
                    "text": str(some[n * 7 % len(some)]),
                    "value": '{"index": 1, "changed_at": "2026-10-03T07:00:00Z"}',
                }
                for key, kind, some in cells
            ],
            "note": "x" * 300,
        }
        for n in range(90)
    ]

    table, _ = first_look(board, 4000)

    assert "column_values[?id=='status'].text | [0]" in table["columns"]
    assert table["rows"][0][:2] == ["item 0", "Done"]


def test_what_is_the_same_in_each_person_is_no_state_of_a_task() -> None:
    people = [None, "Ann", "Bob", "Cleo", "Dan"]
    tasks = [
        {
            "name": f"task {n}",
            "assignee": (who := people[n % 5]) and {"type": "user", "name": who},
            "followers": [{"type": "user", "name": each} for each in people[1 : n % 4 + 1]],
            "done": n % 3 == 0,
            "note": "x" * 200,
        }
        for n in range(90)
    ]

    table, notes = first_look(tasks, 4000)

    assert {"assignee.type", "followers[].type"}.isdisjoint(table["columns"])
    assert table["counts"]["done"] == {"false": 60, "true": 30}
    assert "view='[?done==`true`].[" in notes["more"]


def test_an_object_of_words_with_their_places_is_one_value() -> None:
    words = [f"w{n}" for n in range(400)]
    works = [
        {"title": f"Work {n}", "cited": n * 37 % 90}
        | {"index": {"the": [1], **{word: [2, n] for word in words[n * 3 : n * 3 + 120]}}}
        for n in range(90)
    ]

    table, notes = first_look(works, 4000)

    assert table["columns"] == ["title", "cited"]
    assert "index" in notes["items"]


def test_rows_that_have_no_member_at_all_are_told_once() -> None:
    rows = {"uids": [str(n) for n in range(1, 90)]} | {
        str(n): {"title": f"Title {n} of the list", "kind": "citation", "state": "indexed", "n": n}
        for n in range(1, 90)
    }

    table, _ = first_look(rows, 3000)

    assert json.dumps(table).count("1 at [0]") == 1


def test_what_lies_in_a_cloud_or_a_place_of_the_world_names_no_row() -> None:
    dice = Dice(1)
    hits = [
        {
            "id": dice.hex(20),
            "ip": f"10.1.{n % 9}.{n}",
            "geo": {"city": dice.choice(WORDS), "country_name": ("Norway", "Peru")[n % 2]},
            "cloud": {"instance": {"name": f"web-{dice.hex(6)}"}},
            "request": {"target": f"/{dice.choice(WORDS)}/{dice.choice(WORDS)}?{dice.hex(8)}"},
            "note": "x" * 90,
        }
        for n in range(120)
    ]

    table, _ = first_look(hits)

    assert table["columns"][0] == "request.target"


def test_of_the_one_thing_in_each_row_its_own_id_is_offered() -> None:
    dice = Dice(1)
    reservations = [
        {
            "ReservationId": f"r-{dice.hex(17)}",
            "Instances": [
                {
                    "InstanceId": f"i-{dice.hex(17)}",
                    "ImageId": f"ami-{dice.hex(17)}",
                    "State": {"Code": 16, "Name": ("running", "stopped")[n * 7 % 3 % 2]},
                    "PrivateIpAddress": f"10.0.{n % 5}.{n}",
                    "SubnetId": f"subnet-{dice.hex(17)}",
                    "LaunchTime": dice.time(),
                    "Tags": [
                        {"Key": "Name", "Value": f"{dice.choice(WORDS)}-{n}"},
                        {"Key": "Env", "Value": "prod"},
                    ],
                }
            ],
        }
        for n in range(90)
    ]

    table, notes = first_look(reservations)

    _, filters, *_ = notes["more"].split(";")
    assert "Instances[0].InstanceId" in table["columns"]
    assert "Instances[0].InstanceId" in filters


def test_a_name_that_half_of_the_rows_lack_gives_way_to_one_that_all_have() -> None:
    dice = Dice(1)
    payments = [
        {
            "id": f"ch_{dice.hex(24)}",
            "amount": dice.randint(500, 99_999),
            "description": f"Order {dice.randint(1000, 9999)}",
            "receipt_email": dice.choice((None, f"{dice.choice(WORDS)}{n}@example.org")),
            "status": ("succeeded", "failed")[n * 7 % 3 % 2],
            "created": 1_760_000_000 + dice.randint(1, 9_999_999),
            "customer": f"cus_{dice.hex(14)}",
            "payment_method": f"pm_{dice.hex(24)}",
            "outcome": {"risk_score": dice.randint(1, 70)},
        }
        for n in range(100)
    ]

    table, _ = first_look(payments)

    assert {"description", "amount", "id", "created"} <= {*table["columns"]}
    assert len(table["rows"]) >= 40


def test_rows_so_large_that_few_would_fit_whole_stand_in_brief() -> None:
    dice = Dice(1)
    places = [
        {
            "id": f"ChIJ{dice.hex(23)}",
            "name": f"{dice.choice(WORDS)} {dice.choice(WORDS)}",
            "rating": dice.randint(30, 50) / 10,
            "reviews": [
                {
                    "author": dice.choice(PEOPLE),
                    "rating": dice.randint(1, 5),
                    "text": dice.words(80, 160),
                    "publishTime": dice.time(),
                }
                for _ in range(5)
            ],
        }
        for n in range(20)
    ]

    table, _ = first_look(places)

    assert table["columns"][:2] == ["name", "rating"]
    assert len(table["rows"]) == len(places)


def test_of_mails_with_one_subject_the_sender_is_shown_and_the_date_names_none() -> None:
    dice = Dice(1)
    people = [f"{name} <{name.split()[0].lower()}@example.org>" for name in PEOPLE]
    mails = [
        {
            "id": dice.hex(16),
            "headers": [
                {"name": "Subject", "value": "Re: Party" if n else "Party"},
                {"name": "Date", "value": f"Mon, {n % 28 + 1:02} Mar 2026 18:10:00 +0000"},
                {"name": "From", "value": people[n * 7 % 5]},
            ],
            "size": dice.randint(500, 90_000),
            "body": "x" * 400,
        }
        for n in range(40)
    ]

    table, notes = first_look(mails)

    assert "headers[?name=='From'].value | [0]" in table["columns"]
    assert table["columns"][0] != "headers[?name=='Date'].value | [0]"
    assert "sort_by" not in notes["more"]  # these times do not sort as texts


def test_amounts_of_several_currencies_are_added_up_by_these() -> None:
    rows = [
        {"name": f"order {n}", "amount": n * 11.5, "currency": ("EUR", "USD")[n * 7 % 3 % 2]}
        for n in range(400)
    ]
    offers = examples_of(Document(rows), Call("list"))
    assert "sum_by(@, &currency, &amount)" in offers
    assert "sum(@[*].amount)" not in offers
    for row in rows:
        row["currency"] = "EUR"
    assert "sum(@[*].amount)" in examples_of(Document(rows), Call("list"))
    rows[77]["currency"] = "GBP"  # which is not among the rows by which columns are told
    assert "sum(@[*].amount)" not in examples_of(Document(rows), Call("list"))


def test_the_greatest_of_several_units_is_said_to_be_one_in_any_of_them() -> None:
    rows = [{"name": f"file {n}", "size": n * 37 % 101, "unitCode": "kB"} for n in range(400)]
    assert "&size)' finds the greatest;" in first_look(rows)[1]["more"]
    rows[77]["unitCode"] = "MB"
    assert "&size)' finds the greatest, in any unitCode" in first_look(rows)[1]["more"]


@pytest.mark.parametrize("folders", [True, False], ids=["with their size", "without"])
def test_sizes_that_have_others_in_them_are_not_added_up(folders: bool) -> None:
    def folder(depth: int, n: int) -> dict[str, Any]:
        below = [folder(depth - 1, 5 * n + each) for each in range(5)] if depth else []
        size = sum(each.get("size", 0) for each in below) if below else n * 37 % 101
        return {"name": f"item {n}"} | (
            {"children": below} | ({"size": size} if folders else {}) if below else {"size": size}
        )

    offers = examples_of(Document(folder(4, 1)["children"]), Call("list"))
    assert "max_by(nodes(@, &children), &size)" in offers
    assert ("sum(nodes(@, &children)[*].size)" in offers) != folders


def test_of_many_rows_fewer_are_shown_so_that_state_amount_and_time_stand_beside_the_name() -> None:
    dice = Dice(1)
    charges = [
        {
            "id": f"ch_{dice.hex(21)}",
            "amount": dice.randint(500, 99_999),
            "billing": {"name": f"{dice.choice(PEOPLE)} {dice.choice(WORDS)}"},
            "created": 1_790_000_000 + dice.randint(1, 9_999_999),
            "status": ("succeeded", "failed", "pending")[n * 7 % 5 % 3],
        }
        for n in range(60)
    ]
    table, _ = first_look(charges)
    assert {"billing.name", "status", "amount", "created"} <= {*table["columns"]}
    assert len(table["rows"]) >= 30


def test_a_time_with_its_zone_is_shown_to_the_minute_so_that_more_stands_beside_it() -> None:
    dice = Dice(1)
    events = [
        {
            "message": dice.title(),
            "id": dice.hex(32),
            "status": ("info", "error")[n % 2],
            "timestamp": f"2026-11-{n % 28 + 1:02}T03:08:{n % 60:02}.123+00:00",
            "trace_id": dice.hex(16),
        }
        for n in range(90)
    ]
    table = columns_of_look(events)
    assert {len(each) for each in table["timestamp"]} <= {len("2026-11-01T03:08…"), 29}


def test_the_name_in_a_list_of_pairs_names_the_row_though_few_rows_have_another_pair() -> None:
    dice = Dice(1)
    instances = [
        {
            "InstanceId": f"i-{dice.hex(17)}",
            "State": ("running", "stopped")[n * 7 % 3 % 2],
            "Tags": [
                {"Key": "Name", "Value": f"{dice.choice(WORDS)}-{n}"},
                *([{"Key": "Team", "Value": dice.choice(WORDS)}] * (n % 4 == 0)),
            ],
        }
        for n in range(60)
    ]
    table, _ = first_look(instances)
    assert "Tags[?Key=='Name'].Value | [0]" in table["columns"]


def test_json_in_a_text_does_not_name_a_row() -> None:
    dice = Dice(1)
    orders = [
        {
            "id": n,
            "meta": json.dumps({"gift": n % 2 == 0, "note": dice.title()}),
            "customer": f"{dice.choice(PEOPLE)} {n}",
        }
        for n in range(90)
    ]
    table, notes = first_look(orders, 2000)
    assert table["columns"][:2] == ["id", "customer"]
    assert "meta]" not in notes["more"]


def test_lines_of_a_text_that_are_an_array_name_a_row_by_the_first() -> None:
    dice = Dice(1)
    cells = [
        {
            "cell_type": ("code", "markdown")[n % 2],
            "source": [f"{dice.title()}\n" for _ in range(n % 6 + 1)] + [dice.title()],
        }
        for n in range(40)
    ]
    table, _ = first_look({"cells": cells})
    rows = table["cells"]
    assert "source[0]" in rows["columns"]
    assert len({json.dumps(row) for row in rows["rows"]}) > 30


def test_typed_values_are_what_they_are_called_around_their_type() -> None:
    dice = Dice(1)
    items = [
        {
            "pk": {"S": f"PROPERTY#{dice.hex(10)}"},
            "name": {"S": dice.title()},
            "beds": {"N": str(dice.randint(8, 140))},
            "city": {"S": ("Cork", "Graz", "Tartu")[n % 5 % 3]},
            "open": {"BOOL": n % 9 > 0},
            "seasons": {"L": [{"M": {"price": {"N": str(dice.randint(10, 90))}}}] * (n % 3 + 1)},
        }
        for n in range(60)
    ]
    table, notes = first_look({"Items": items})
    assert {"name.S", "city.S", "beds.N"} <= {*table["Items"]["columns"]}
    assert "max_by(Items, &beds.N)" in notes["more"]


def test_of_many_series_the_greatest_of_all_is_offered_and_no_value_beside_another_time() -> None:
    series = [
        {
            "Label": f"{WORDS[n]} {n}",
            "Times": [f"2026-11-30T{m // 60:02}:{m % 60:02}:00Z" for m in range(90)],
            "Values": [(m * 37 + n * 11) % 101 / 4 for m in range(90)],
            "Code": ("Complete", "PartialData")[n % 6 == 5],
            "Messages": [],
        }
        for n in range(20)
    ]
    table, notes = first_look({"Results": series})
    assert table["Results"]["columns"] == ["Label", "Code"]
    view = "max_by(Results, &max(Values)).[Label, max(Values)]"
    assert f"view='{view}' finds the greatest of all" in notes["more"]
    assert "sort_by(" not in notes["more"]
    highest = max(series, key=lambda each: max(each["Values"]))
    assert view_of(Document({"Results": series}), view) == [highest["Label"], 25.0]


def test_the_last_rows_are_offered_though_some_say_that_they_have_no_time() -> None:
    dice = Dice(1)
    pages = [
        {"title": dice.title(), "published": "N/A" if n % 9 == 4 else dice.time(), "size": n}
        for n in range(60)
    ]
    _, notes = first_look(pages, 2000)
    [latest] = [each for each in notes["more"].split("'") if each.startswith("sort_by(@, &publ")]
    times = [each["published"] for each in pages if each["published"] != "N/A"]
    remarks: list[str] = []
    rows = view_of(Document(pages), latest, remarks=remarks)
    assert [row["published"] for row in rows] == sorted(map(str, times))[-3:]
    assert remarks == ["published is no time in 7 of 60 elements, left out"]


def test_of_entries_of_a_log_the_message_and_the_time_to_the_second_are_shown() -> None:
    dice = Dice(4)
    rows = [
        {
            "insertId": dice.hex(14),
            "resource": {"labels": {"revision_name": f"{dice.words(1, 1)}-00{n}-{dice.hex(3)}"}},
            "logger": f"com.acme.{dice.words(1, 1)}",
            "message": dice.words(3, 4),
            "severity": ("INFO", "WARN", "DEBUG")[n % 3],
            "timestamp": f"2026-11-25T09:4{n // 60}:{n % 60:02}.{dice.randint(10, 99)}0000+00:00",
            "request": {"size": dice.randint(100, 9000), "agent": "okhttp/4.12.0"},
        }
        for n in range(100)
    ]
    table, _ = first_look(rows, 4400)
    row = dict(zip(table["columns"], table["rows"][7], strict=True))
    assert row["message"] == rows[7]["message"]
    assert row["timestamp"] == "2026-11-25T09:40:07…"


def test_rows_of_several_types_each_show_the_text_that_a_row_of_its_type_has() -> None:
    dice = Dice(6)
    texts = [f"{dice.words(3, 5)} {n}" for n in range(90)]
    kinds = ["paragraph", "to_do", "paragraph", "heading_2", "paragraph", "to_do"]
    blocks = [
        {
            "id": dice.uuid(),
            "type": kinds[n % 6],
            "created_time": dice.time(),
            "in_trash": False,
            kinds[n % 6]: {"rich_text": [{"plain_text": text, "href": None}], "color": "default"},
        }
        for n, text in enumerate(texts)
    ]
    table, _ = first_look(blocks)
    assert len(table["rows"]) >= 30
    for text, row in zip(texts, table["rows"], strict=False):
        assert any(cell and text.startswith(str(cell).rstrip("…")) for cell in row), row


def test_a_row_of_cells_is_shown_as_one_as_in_a_sheet() -> None:
    rows = [
        {
            "values": [
                {
                    "formattedValue": each,
                    "effectiveFormat": {"wrapStrategy": "OVERFLOW_CELL", "padding": {"top": 2}},
                }
                for each in (f"Supplier {n}", f"kr {n * 37 % 1000}", "Active")
            ]
        }
        for n in range(90)
    ]
    table, _ = first_look({"data": [{"rowData": rows}]}, 4000)
    sheet = table["data"][0]["rowData"]
    assert sheet["columns"] == ["values[].formattedValue"]
    assert sheet["rows"][7] == [["Supplier 7", "kr 259", "Active"]]


def test_no_thing_of_a_list_inside_stands_for_all_of_them() -> None:
    rows = [
        {
            "title": f"{WORDS[n % 23]} {n}",
            "variants": {"edges": [{"node": {"sku": f"S-{n}-{m}", "left": m}} for m in range(4)]},
        }
        for n in range(60)
    ]
    table, _ = first_look(rows, 3000)
    assert not [each for each in table["columns"] if "edges[" in each and "edges[]" not in each]


@pytest.mark.parametrize("structured", [False, True])
def test_rows_can_be_asked_by_the_condition_that_has_several_states(structured: bool) -> None:
    def conditions(n: int) -> Rows:
        pairs = {"DiskPressure": "False", "Ready": ("True", "Unknown")[n == 7]}
        times = {"lastHeartbeatTime": f"2026-11-01T00:00:{n:02}Z"}
        return [{"type": kind, "status": state, **times} for kind, state in pairs.items()]

    rows = [
        {"metadata": {"name": f"node-{n}"}, "status": {"conditions": conditions(n)}}
        for n in range(60)
    ]
    document, call = look(Listing({"items": rows}, ()), structured=structured, bound=3000)
    more = str(call.notices) + document.encode().decode()
    assert "items[?(status.conditions[?type=='Ready'].status | [0])=='Unknown']" in more


def test_two_things_of_one_kind_name_a_row_together() -> None:
    teams = [{"id": n, "name": f"{each.capitalize()} FC"} for n, each in enumerate(WORDS[:20])]
    rows = [
        {
            "id": 1000 + n,
            "homeTeam": teams[n % 20],
            "awayTeam": teams[n * 7 % 19],
            "referees": [{"id": 5, "name": PEOPLE[n % 5]}],
            "note": "x" * 90,
        }
        for n in range(90)
    ]
    table, _ = first_look(rows, 4000)
    assert {"homeTeam.name", "awayTeam.name"} <= {*table["columns"]}


def test_who_and_when_stand_before_a_number_of_no_known_kind_and_an_id_of_another_thing() -> None:
    dice = Dice(1)
    rows = [
        {
            "id": dice.hex(16),
            "historyId": str(dice.randint(10**7, 10**8)),
            "subject": f"Your order {n} of {dice.choice(WORDS)}s",
            "from": f"{dice.choice(PEOPLE)} <post@{dice.hex(5)}.example>",
            "internalDate": str(1_788_997_959_000 + dice.randint(0, 10**9)),
            "sizeEstimate": dice.randint(10**4, 10**5),
            "body": "x" * 200,
        }
        for n in range(90)
    ]
    table, _ = first_look(rows, 4000)
    assert table["columns"][:3] == ["subject", "from", "internalDate"]


def test_numbers_of_lots_are_no_words_of_a_name() -> None:
    dice = Dice(1)
    rows = [
        {
            "code_info": f"Lot: {dice.choice('ABCDEFG')}{dice.choice('HIKLM')}{10_000 + n}, Exp",
            "product_description": f"{dice.title()}, 20 mg, bottle of {n}",
            "note": "x" * 200,
        }
        for n in range(90)
    ]
    table, _ = first_look(rows, 4000)
    assert table["columns"][0] == "product_description"


def test_the_few_rows_that_have_a_reason_can_be_asked() -> None:
    rows = [
        {
            "name": f"message {n} of {WORDS[n % 23]}",
            "status": ("sent", "received")[n % 2] if n != 61 else "failed",
            "error_code": {23: 30003, 61: 21610, 88: 30007}.get(n),
            "note": "x" * 300,
        }
        for n in range(130)
    ]
    _, notes = first_look({"messages": rows}, 4000)
    view = "messages[?error_code!=`null`]"
    assert f"view='{view}' filters" in notes["more"]
    failed = view_of(Document({"messages": rows}), view)
    assert [row["error_code"] for row in failed] == [30003, 21610, 30007]
