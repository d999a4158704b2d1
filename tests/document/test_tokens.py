"""The estimate of tokens is held to a real tokenizer."""

import pytest

from tests.tokens import errors


@pytest.mark.slow
def test_tokens_of_each_kind_of_text_are_estimated_to_within_a_tenth() -> None:
    estimates = list(errors())
    assert len(estimates) == 7
    assert [error for error in estimates if abs(error.share) > 0.1] == []
