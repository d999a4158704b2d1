"""How many failures it takes to put a rule out of service, and that nothing puts it back."""

from proxy.ruleset.circuit_breaker import MOST, CircuitBreaker


def test_a_rule_is_out_of_service_after_five_failures_in_a_row() -> None:
    circuit = CircuitBreaker()
    for _ in range(MOST - 1):
        assert not circuit.failed()
    assert not circuit.open
    assert circuit.failed()
    assert circuit.open


def test_what_worked_in_between_begins_the_count_anew() -> None:
    circuit = CircuitBreaker()
    for _ in range(3):
        for _ in range(MOST - 1):
            assert not circuit.failed()
        circuit.worked()
    assert not circuit.open


def test_a_rule_stays_out_of_service_and_that_is_said_once() -> None:
    circuit = CircuitBreaker()
    assert [circuit.failed() for _ in range(20)].count(True) == 1
    circuit.worked()
    assert circuit.open
    assert not circuit.failed()
