"""Validation of a run's evidence after it was made readable, before violations are believed."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.validation.clocks import clock_problems
from urteil.harness.verify.validation.completeness import far_offsets, gaps
from urteil.harness.verify.validation.manifest import check_tables
from urteil.harness.verify.validation.missing_values import tables_missing_values
from urteil.harness.verify.validation.part_checks import foreign_rows
from urteil.harness.verify.validation.readable_evidence import ReadableEvidence
from urteil.harness.verify.validation.report import ValidationReport
from urteil.harness.verify.validation.row_counts import count_rows
from urteil.harness.verify.validation.sufficiency import insufficiencies, unrecorded_faults
from urteil.harness.verify.validation.unread_records import unread_record_reasons

RECORDS = ("sends", "reads", "replicas")


def validate(
    engine: Engine,
    readable: ReadableEvidence,
    scenario: Scenario,
    facts: RunFacts,
    derived: Derived,
    ticks: Sequence[Row],
    *,
    is_violated: bool,
) -> ValidationReport:
    """Everything that is wrong with the evidence, or missing from it.

    The shared tables must exist. `ticks` are the acknowledgements by time. `is_violated`: a
    guarantee seems violated, so that every missing value matters.
    """
    run_dir, report = readable.run_dir, readable.report
    check_tables(run_dir, facts, report)
    for table, reason in foreign_rows(run_dir, facts.run).items():
        report.add_damage(table, reason)
    if far := far_offsets(run_dir):
        for table in RECORDS:
            report.add_damage(table, far)
    sends_in_windows = count_rows(engine, facts, report)
    if unrecorded := unrecorded_faults(scenario, derived):
        report.add_damage("faults", unrecorded)
    for table, reason in tables_missing_values(engine, run_dir, is_violated=is_violated):
        report.add_damage(table, reason)
    report.add_clocks(clock_problems(run_dir, facts))
    report.add(insufficiencies(scenario, facts, derived, ticks, sends_in_windows))
    report.add(gaps(run_dir, facts, derived))
    report.add(unread_record_reasons(engine, facts, derived))
    report.reasons = list(dict.fromkeys(report.reasons))
    return report
