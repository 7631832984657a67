"""Prometheus' text format, version 0.0.4.

`prometheus-client` would need a lock and an object for each number and a call for each request. The
broker counts in plain integers, and these lines format them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil

from urteil.broker.metrics.declarations import METRICS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BLOCK_LINES = 500
QUANTILES = {
    "0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999,
}  # fmt: skip
"""Quantiles of Kafka's histograms, which have no sum, as the exporter writes them."""

Labels = tuple[tuple[str, str], ...]
Sample = tuple[Labels, float]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its samples. `kind` is gauge or counter. Samples are read once."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]

    def blocks(self) -> Iterator[str]:
        """Yield the text in pieces of at most `BLOCK_LINES` lines."""
        lines = self._lines()
        while block := list(islice(lines, BLOCK_LINES)):
            yield "".join(block)

    def _lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"
        for labels, value in self.samples:
            yield f"{self.name}{_labels(labels)} {value}\n"


def build_family(name: str, samples: Iterable[Sample]) -> Family:
    """Return the declared metric `name` with its samples."""
    metric = METRICS[name]
    return Family(name, metric.kind, metric.help, samples)


def build_single(name: str, value: float) -> Family:
    """Return the declared metric `name` with one value without labels."""
    return build_family(name, [((), value)])


def quantiles_ms(values_s: Iterable[float], labels: Labels = ()) -> Iterator[Sample]:
    """Return a sample for each quantile (nearest rank) in ms; 0 without values, as in Kafka."""
    ordered = sorted(values_s)
    for label, quantile in QUANTILES.items():
        yield (*labels, ("quantile", label)), round(_rank(ordered, quantile) * 1000, 3)


def _rank(ordered: Sequence[float], quantile: float) -> float:
    return ordered[ceil(quantile * len(ordered)) - 1] if ordered else 0.0


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
