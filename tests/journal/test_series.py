"""Series are written as Prometheus has them, and are at 0 before anything has happened."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from divingbell.journal.series import Counts, Spread


def _lines(registry: CollectorRegistry) -> list[str]:
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_counters_and_gauges_are_told_apart_by_their_labels() -> None:
    registry = CollectorRegistry(auto_describe=False)
    seen = Counts(registry, "seen", "Things.", ("kind",))
    running = Counts(registry, "running", "Now.", can_fall=True)
    assert _lines(registry) == ["running 0.0"]
    seen.add(1, "small")
    seen.add(2.5, "small")
    seen.add(0, "large")
    running.add()
    running.add(-1)
    running.add(-1)
    assert _lines(registry) == [
        'seen_total{kind="small"} 3.5',
        'seen_total{kind="large"} 0.0',
        "running -1.0",
    ]


def test_an_amount_is_in_the_first_bucket_that_it_does_not_exceed_and_in_those_above() -> None:
    registry = CollectorRegistry(auto_describe=False)
    lengths = Spread(registry, "lengths", "Lengths.", (0.5, 10))
    for amount in (0.5, 0.6, 10, 11):
        lengths.observe(amount)
    assert _lines(registry) == [
        'lengths_bucket{le="0.5"} 1.0',
        'lengths_bucket{le="10.0"} 3.0',
        'lengths_bucket{le="+Inf"} 4.0',
        "lengths_count 4.0",
        "lengths_sum 22.1",
    ]
