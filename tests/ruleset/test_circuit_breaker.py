from proxy.ruleset.circuit_breaker import MAX_FAILURES, CircuitBreaker


def test_a_success_resets_the_count_until_the_rule_is_out_of_service_for_good() -> None:
    breaker = CircuitBreaker()
    for _ in range(3):
        assert not any(breaker.record_failure() for _ in range(MAX_FAILURES - 1))
        breaker.record_success()
    assert [breaker.record_failure() for _ in range(20)].count(True) == 1
    breaker.record_success()
    assert breaker.open
    assert not breaker.record_failure()
