"""The grammar of JMESPath: without it, `rows[0][2:5].name` reads as a member of the array.

The library takes a slice after an index for another index, of which nothing is a projection.
"""

from typing import Any

from jmespath import parser

_Library: Any = parser.Parser


class Parser(_Library):  # type: ignore[misc]
    """The library's own, but for a slice after an index: what follows is asked of each element."""

    def _token_led_lbracket(self, base: dict[str, Any]) -> Any:
        slices = "colon" in (self._lookahead(0), self._lookahead(1))
        if base["type"] == "index_expression" and slices:
            return self._project_if_slice(base, self._parse_index_expression())
        return super()._token_led_lbracket(base)
