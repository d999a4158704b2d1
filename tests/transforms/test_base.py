"""What a transform may ask of the call it works for."""

import pytest

from proxy.errors import ShapeMismatch
from proxy.transforms.base import Argument, Call, constant


def test_a_dotted_argument_is_found_in_nested_objects() -> None:
    call = Call("t", {"params": {"limit": 5}, "plain": "x"})

    assert call.argument("params.limit") == 5
    assert call.argument("plain.limit") is None
    assert call.argument("params.other") is None


def test_an_argument_is_shown_under_its_advertised_name() -> None:
    call = Call("t", names={"limit": "page_limit"})

    assert (call.shown("limit"), call.shown("offset")) == ("page_limit", "offset")


def test_a_constant_may_come_from_the_call() -> None:
    call = Call("t", {"prefix": "a/", "count": 3})

    assert constant("b/", call) == "b/"
    assert constant(Argument("prefix"), call) == "a/"
    assert constant(Argument("absent"), call) is None
    with pytest.raises(ShapeMismatch, match="count: 3 is not a string"):
        constant(Argument("count"), call)
