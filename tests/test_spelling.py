from proxy.spelling import did_you_mean, nearest


def test_the_nearest_known_word_is_named() -> None:
    assert nearest("respnse", ["response", "arguments"]) == "response"


def test_a_word_like_none_is_given_no_advice() -> None:
    assert did_you_mean("zebra", ["response", "arguments"]) == ""


def test_a_word_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("paginate" * 100_000, ["paginate"]) is None
