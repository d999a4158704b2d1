"""The estimate of tokens is held to a real tokenizer."""

import pytest

from tests.servers.install import needs
from tests.tokens import errors


@pytest.mark.long
@needs("tokenizer")
def test_tokens_of_each_kind_of_text_are_estimated_to_within_a_tenth() -> None:
    shares = errors()
    assert len(shares) == 7
    assert {kind: share for kind, share in shares.items() if abs(share) > 0.1} == {}
