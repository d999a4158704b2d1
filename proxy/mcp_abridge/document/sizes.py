"""Sizes in bytes as users write them, such as `4MiB`."""

# As in typing, whose import would take longer than all other work before the server starts.
TYPE_CHECKING = False

if TYPE_CHECKING:
    Size = int
else:

    class Size(int):
        """Bytes: a number, or a text like `4MiB`."""


_UNITS = {
    "": 1,
    "B": 1,
    "kB": 1_000,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}


LEAST_BOUND = 300
"""The bytes of the smallest bound: less has no room for a notice of the omissions."""


def size(text: str) -> int:
    """Parse a number of bytes. Raises ValueError if `text` is not a size."""
    number = text.rstrip("BGKMik")
    unit = text[len(number) :]
    if not (number.isascii() and number.isdigit() and int(number)) or unit not in _UNITS:
        raise ValueError(f"{text!r} is not a size; write it like 8kB, 256MB or 1GiB")
    return int(number) * _UNITS[unit]
