import pytest

from proxy.document.patterns import Expression
from proxy.errors import AbridgeError, TransformError
from proxy.transforms.jmespath import Jmespath
from tests.documents import shaped


def test_an_expression_that_does_not_fit_the_value_raises_and_says_why() -> None:
    with pytest.raises(TransformError, match="invalid type"):
        shaped(b'{"a": 1}', Jmespath(Expression("length(a)")))


@pytest.mark.slow
def test_a_result_that_grows_without_end_is_refused_unwritten() -> None:
    explosive = " | ".join(["[@, @]"] * 40)
    with pytest.raises(AbridgeError, match=r"gives more than 1048604 bytes$"):
        shaped(b'{"a":1}', Jmespath(Expression(explosive)))
