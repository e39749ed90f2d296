"""Series: numbers that grow, by their labels, for a monitor that asks for all of them now and then.

They are added to on the event loop alone, with no lock, and read in another thread: what is read
may be one event old. Measured: the counters of prometheus-client, which any thread may add to, take
three times as long.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import inf

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector, CollectorRegistry


class Counts(Collector):
    """A number for each combination of labels that was seen: a counter, or a gauge."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        words: str,
        labels: tuple[str, ...] = (),
        *,
        can_fall: bool = False,
    ) -> None:
        self._family = GaugeMetricFamily if can_fall else CounterMetricFamily
        self._name = name
        self._words = words
        self.labels = labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}
        registry.register(self)

    def add(self, amount: float = 1.0, *labels: str) -> None:
        """Add to the number of these labels; one that was not there begins at 0."""
        self._values[labels] = self._values.get(labels, 0.0) + amount

    def describe(self) -> Iterable[Metric]:
        return [self._family(self._name, self._words, labels=self.labels)]

    def collect(self) -> Iterator[Metric]:
        family = self._family(self._name, self._words, labels=self.labels)
        for labels, value in self._values.copy().items():
            family.add_metric(labels, value)
        yield family


class Spread(Collector):
    """How many amounts there were up to each of some bounds, and their sum."""

    def __init__(
        self, registry: CollectorRegistry, name: str, words: str, bounds: Iterable[float]
    ) -> None:
        self._name = name
        self._words = words
        self._bounds = [float(bound) for bound in bounds]
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, amount: float) -> None:
        """Count an amount."""
        self._counts[bisect_left(self._bounds, amount)] += 1
        self._sum += amount

    def describe(self) -> Iterable[Metric]:
        return [HistogramMetricFamily(self._name, self._words)]

    def collect(self) -> Iterator[Metric]:
        counts, total = self._counts.copy(), self._sum
        so_far, buckets = 0, list[tuple[str, float]]()
        for bound, count in zip([*self._bounds, inf], counts, strict=True):
            so_far += count
            buckets.append(("+Inf" if bound == inf else repr(bound), float(so_far)))
        yield HistogramMetricFamily(self._name, self._words, buckets=buckets, sum_value=total)
