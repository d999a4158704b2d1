"""The grammar of JMESPath: without it, `rows[0][2:5].name` reads as a member of the array.

The library takes a slice after an index for another index, of which nothing is a projection.
"""

from typing import Any

from jmespath import parser

_Library: Any = parser.Parser


class Parser(_Library):  # type: ignore[misc]
    """The library's own, but for a slice after an index: what follows is asked of each element."""

    def _token_led_lbracket(self, base: dict[str, Any]) -> Any:
        after_index = base["type"] == "index_expression"
        if after_index and self._lookahead(0) in ("number", "colon"):
            part = self._parse_index_expression()
            if part["type"] == "slice":
                return self._project_if_slice(base, part)
            return {**base, "children": [*base["children"], part]}
        return super()._token_led_lbracket(base)
