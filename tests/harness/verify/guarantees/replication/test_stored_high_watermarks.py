"""A high watermark on disk is recent, where brokers had the time to write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import END_NS, S

LAST = ONE.records - 1


def _found(run_dir: Path, noted: int | None, over_s: int, broker: int = 2) -> list[int | None]:
    """Where the load ended so long after the last record, and one broker noted this offset."""
    tables = healthy()
    for row in tables["logs"]:
        if row["broker"] == broker:
            row["high_watermark"] = noted
    phases = [Phase(name="during", begin_ns=0, end_ns=END_NS + over_s * S)]
    facts = synthetic.facts(ONE, phases=phases)
    result = alone("replica_divergence", run_dir, tables, facts=facts)
    return [finding.offset for finding in result.findings if finding.sub_kind == "behind"]


@pytest.mark.parametrize(
    ("noted", "over_s", "expected"),
    [
        (LAST + 1, 40, []),
        (LAST, 40, [LAST]),
        (0, 40, [LAST]),
        (None, 40, []),  # unknown
        (0, -100, []),  # the load ended before anything was acknowledged long ago
    ],
)
def test_outdated_stored_high_watermark_is_found(
    noted: int | None, over_s: int, expected: list[int], tmp_path: Path
) -> None:
    assert _found(tmp_path, noted, over_s) == expected


def test_the_sentence_names_the_broker(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["logs"]:
        row["high_watermark"] = 7
    phases = [Phase(name="during", begin_ns=0, end_ns=END_NS + 40 * S)]
    facts = synthetic.facts(ONE, phases=phases)
    findings = alone("replica_divergence", tmp_path, tables, facts=facts).findings
    sentences = sorted(finding.sentence for finding in findings if finding.sub_kind == "behind")
    assert len(sentences) == len(tables["logs"])
    assert "yet broker 1, which is in the ISR, noted 7 as its high watermark" in sentences[0]
