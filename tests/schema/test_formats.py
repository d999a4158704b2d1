import pytest

from proxy.schema.formats import FORMATS

UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("date", "2024-02-29"),
        ("time", "23:59:60Z"),
        ("time", "09:00:00.123456-05:30"),
        ("date-time", "2026-01-31T09:00:00z"),
        ("date-time", "2026-01-31t09:00:00.5+00:00"),
        ("uuid", UUID),
        ("uuid", UUID.upper()),
        ("ipv4", "127.0.0.1"),
        ("ipv6", "::1"),
    ],
)
def test_a_text_of_the_format_is_taken(name: str, text: str) -> None:
    assert FORMATS[name](text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("date", "2023-02-29"),
        ("date", "20240229"),
        ("date", "2024-W09-4"),
        ("time", "09:00:00"),
        ("time", "24:00:00Z"),
        ("time", "09:60:00Z"),
        ("time", "09:00:61Z"),
        ("time", "09:00:00+24:00"),
        ("time", "٠٩:00:00Z"),
        ("date-time", "2026-01-31T09:00:00"),
        ("date-time", "2026-01-31 09:00:00Z"),
        ("date-time", "2026-13-31T09:00:00Z"),
        ("date-time", ""),
        ("uuid", UUID.replace("-", "")),
        ("uuid", f"{{{UUID}}}"),
        ("uuid", f"{UUID}\n"),
        ("uuid", UUID.replace("1", "g")),
        ("ipv4", "::1"),
        ("ipv4", "127.0.0.256"),
        ("ipv6", "127.0.0.1"),
        ("ipv6", "fe80::1%eth0"),
        ("ipv6", "x"),
    ],
)
def test_a_text_of_another_form_is_not(name: str, text: str) -> None:
    assert not FORMATS[name](text)
