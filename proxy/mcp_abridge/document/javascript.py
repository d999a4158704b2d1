"""JSON in the one spelling that JavaScript gives it.

Some clients decode structuredContent, encode it again, and compare that with the text. Without this
spelling a server's 52.0 is 52 in one of them, and the model reads both.
"""

from typing import Any

from mcp_abridge.document.tree import Number, encode


def spelled(raw: bytes) -> str | None:
    """Return JSON as `JSON.stringify(JSON.parse(raw))` spells it; None if that is another value.

    It is if a number has more digits than a double holds (ECMA-262, Number::toString). None for
    what is no JSON, too.

    >>> spelled(b'{"b": [52.0, 1E-7, -0], "10": "\\\\u00e9", "9": 1.50}')
    '{"9":1.5,"10":"é","b":[52,1e-7,0]}'
    >>> spelled(b'{"id": 12345678901234567890}')
    """
    import json

    try:
        value = json.loads(
            raw,
            parse_float=_number,
            parse_int=_number,
            parse_constant=_number,
            object_pairs_hook=_object,
        )
        return encode(value).decode()
    except (ValueError, ArithmeticError, RecursionError):
        return None


def _number(spelling: str) -> float:
    if len(spelling) < 16 and spelling.lstrip("-").isdecimal():
        return int(spelling)
    value = float(spelling)
    digits = repr(value)
    if digits == spelling and "e" not in digits:
        return int(value) if value.is_integer() else value
    from decimal import Decimal

    if 1e-6 <= abs(value) < 1e21:
        digits = format(Decimal(digits).normalize(), "f")
    elif value:
        mantissa, exponent = digits.split("e")
        digits = f"{mantissa}e{int(exponent):+d}"
    else:
        digits = "0"
    if Decimal(digits) != Decimal(spelling):
        raise ValueError(spelling)
    return Number(digits)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    indices = [name for name in members if name.isdecimal() and _is_index(name)]
    if indices:  # come first, in the order of numbers
        return {name: members[name] for name in sorted(indices, key=int)} | members
    return members


def _is_index(name: str) -> bool:
    return len(name) < 11 and name == str(int(name)) and int(name) < 2**32 - 1
