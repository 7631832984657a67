"""The page of the broker's metrics."""

from __future__ import annotations

from docs.reference_pages.markdown import code, codes, page, table
from urteil.broker.metrics.declarations import SUBJECTS, Metric

ABOUT = """\
Every metric that our broker exports, with its kind and labels. [Metrics](../broker/metrics.md) says
how to scrape them and where they differ from Apache Kafka's. Sums of all topics have no label
`topic`. This page is generated from `broker/metrics/declarations.py` by `make docs`."""


def render() -> dict[str, str]:
    return {"metrics.md": page("Metrics", ABOUT, *map(_section, SUBJECTS, SUBJECTS.values()))}


def _section(subject: str, metrics: tuple[Metric, ...]) -> str:
    rows = [
        (code(metric.name), metric.kind, codes(metric.labels), metric.help) for metric in metrics
    ]
    return f"## {subject}\n\n{table(('metric', 'kind', 'labels', 'meaning'), rows)}"
