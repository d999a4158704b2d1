"""An estimate of the tokens that a text takes, without the megabytes of a real tokenizer.

A text is split as tokenizers split it: words, groups of digits, signs, space. The weights were
fitted to o200k_base; `python -m tests.tokens` prints the error by kind of text.
"""

import re

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|\s+|[!-/:-@\[-`{-~]+|[^\x00-\x7f]|.")

_WORD = 8  # letters that are often one token
_WORD_REST = 0.23  # for each further letter
_PART = 3  # letters among digits, as in base64, or capitals
_MIXED = 1.2
_DIGITS = 1.0  # for each three
_SIGNS = 0.4  # for each sign after the third
_LINES, _SPACES = 0.64, 1.27
_HAN, _KANA, _HANGUL, _OTHER = 0.65, 0.92, 0.76, 0.23
_DENSE = (0.68, 1.7, 2.9)  # tokens by byte, digit, and sign within words, of those of plain JSON


def tokens(text: str) -> int:
    """Return about how many tokens a text takes, to within a tenth for most texts.

    >>> tokens('{"state": "open", "number": 4123}'), tokens("A model reads tokens, not bytes.")
    (12, 8)
    """
    total, after_digits = 0.0, False
    for match in _PIECE.finditer(text):
        piece = match[0]
        first, size = piece[0], len(piece)
        if first.isdigit() and first.isascii():
            total += _DIGITS * -(-size // 3)
            after_digits = True
            continue
        if not first.isascii():
            total += _beyond_ascii(first)
        elif first.isspace():
            total += _LINES if "\n" in piece else _SPACES if size > 1 else 0
        elif not first.isalpha():
            total += 1 + _SIGNS * max(size - 3, 0)
        elif after_digits or (size > 1 and piece.isupper()):
            total += (_MIXED if after_digits else 1) + _WORD_REST * max(size - _PART, 0)
        else:
            total += max(1, 0.31 + _WORD_REST * (size - _WORD))
        after_digits = False
    return round(total)


def density(part: bytes) -> float:
    """Return the tokens of a part by those of as much plain JSON, in microseconds; at least 1.

    It was fitted to `tokens` on 60 first answers, of which it is within an eighth.

    >>> density(b'"Crash on start","open"'), round(density(b'"2026-11-28T10:41:07.551Z",8123'), 1)
    (1.0, 2.1)
    """
    size = max(len(part), 1)
    digits = size - len(part.translate(None, b"0123456789"))
    signs = size - len(part.translate(None, b"-_/.@+=()"))
    by_byte, by_digit, by_sign = _DENSE
    return max(by_byte + (by_digit * digits + by_sign * signs) / size, 1.0)


def _beyond_ascii(character: str) -> float:
    code = ord(character)
    if 0x3040 <= code < 0x3100:
        return _KANA
    if 0x3400 <= code < 0xA000:
        return _HAN
    return _HANGUL if 0xAC00 <= code < 0xD7B0 else _OTHER
