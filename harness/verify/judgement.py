"""The judgement of a run: from its evidence to its verdict.

Stages, in order: validate the evidence (`validation/`), derive the small tables (`derived/`), build
the shared tables on an engine (`shared_tables.py`), run the query of each guarantee (`check.py`),
turn violations into `unknown` where the evidence is in doubt, and collect the reasons that keep the
verdict from `PASS`. The self-test runs in parallel on its own engine.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from urteil.chaos.capabilities import describe_missing
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, Scenario, load_facts, load_scenario, save
from urteil.harness.stopwatch import Stopwatch
from urteil.harness.verify import evidence, shared_tables
from urteil.harness.verify.check import Places, check
from urteil.harness.verify.derived import impact
from urteil.harness.verify.derived.committed_positions import commit_break_rows
from urteil.harness.verify.derived.coordinators import Coordinators
from urteil.harness.verify.derived.derive import derive
from urteil.harness.verify.derived.expected_progress import (
    resumed_progress_rows,
    transaction_progress_rows,
    undisturbed_progress_rows,
)
from urteil.harness.verify.derived.prompt_intervals import prompt_read_rows, prompt_send_rows
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.engine import Engine, open_engine, open_views
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict
from urteil.harness.verify.stored_findings import save_all_findings
from urteil.harness.verify.threads import map_in_order, threads
from urteil.harness.verify.validation import host_overload
from urteil.harness.verify.validation.excuses import may_be_excused
from urteil.harness.verify.validation.manifest import damaged_clients
from urteil.harness.verify.validation.readable_evidence import ReadableEvidence, make_readable
from urteil.harness.verify.validation.report import ValidationReport
from urteil.harness.verify.validation.settings_numbers import replace_invalid_numbers
from urteil.harness.verify.validation.validate import validate

LOST = "not every part of the lab lived, or was healed: it may be the lab that is late"

_COUNTED = ("sends", "reads", "polls", "passes", "replicas", "states", "faults")


def judge_run(
    run_dir: Path,
    *,
    engine: str,
    master: str | None,
    session: Any,
    canary: bool = True,
    reason: str = "requested",
) -> Result:
    """Judge `run_dir` on `engine`, chosen for `reason`; see `urteil.harness.verify.judge`."""
    scenario, facts, odd = replace_invalid_numbers(load_scenario(run_dir), load_facts(run_dir))
    seconds, phases = dict(facts.seconds), list(facts.spent)
    watch = Stopwatch(seconds, phases)
    work = run_dir / "work" / "verify"
    _remove_links(work.parent, work, run_dir / "findings")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with watch("verify"):
        try:
            with watch("verify/validation"):
                readable = make_readable(run_dir, work)
            running = open_engine(engine, readable.run_dir, work, master=master, session=session)
            try:
                context = (scenario, facts, odd, watch)
                result = _judge(run_dir, running, readable, *context, canary=canary)
                save_all_findings(running, run_dir, result.guarantees)
            finally:
                running.close()
        finally:
            shutil.rmtree(work, ignore_errors=True)
    result.engine_reason = reason
    result.seconds, result.phases = seconds, phases
    save(run_dir / "result.json", result)
    return result


def _judge(
    run_dir: Path,
    running: Engine,
    readable_evidence: ReadableEvidence,
    scenario: Scenario,
    facts: RunFacts,
    odd: list[str],
    watch: Stopwatch,
    *,
    canary: bool,
) -> Result:
    """Judge the evidence. After an exception, judge the part that a deep validation accepts."""
    report = readable_evidence.report
    report.reasons = [*facts.problems, *report.reasons, *odd]
    try:
        return _judge_readable(running, readable_evidence, scenario, facts, watch, canary=canary)
    except Exception as failure:
        readable_evidence = make_readable(run_dir, running.work, deep=True)
        report = readable_evidence.report
        report.reasons = [*facts.problems, *report.reasons, *odd]
        try:
            if not report.damaged:
                raise failure
            return _judge_readable(
                running, readable_evidence, scenario, facts, watch, canary=canary
            )
        except Exception as again:
            text = f"{type(again).__name__}: {' '.join(str(again).split())[:300]}"
            report.add([f"the evidence cannot be judged: {text}"])
            return empty_result(facts, running.name, report.reasons)


def _remove_links(*folders: Path) -> None:
    """Remove links in place of the run's folders: their targets do not belong to the run."""
    for folder in folders:
        if folder.is_symlink():
            folder.unlink()


def _judge_readable(
    running: Engine,
    readable_evidence: ReadableEvidence,
    scenario: Scenario,
    facts: RunFacts,
    watch: Stopwatch,
    *,
    canary: bool,
) -> Result:
    """The result of the readable evidence, stage by stage."""
    run_dir = readable_evidence.run_dir
    with watch("verify/derived tables"), _pause_garbage_collection():
        derived = prepare(run_dir, scenario, facts)
    with threads(1) if canary else nullcontext() as pool:
        context = (run_dir, scenario, facts, derived, watch)
        self_test = pool.apply_async(_run_self_test, context) if pool else None
        judged, ticks = examine(running, run_dir, derived, watch)
        is_violated = any(result.status is Status.VIOLATED for result in judged)
        report = validate(
            running, readable_evidence, scenario, facts, derived, ticks, is_violated=is_violated
        )
    judged = _doubt_damaged_tables(judged, report)
    judged = _doubt_times(judged, report.clocks, derived)
    judged = _doubt_lateness(judged, run_dir, facts)
    result = _result(run_dir, scenario, facts, derived, judged, ticks, report.reasons, running)
    if self_test is not None:
        _add_self_test(self_test.get(), result)
    return result


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: all rows of derived tables stay in memory, and each collection
    would visit them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _run_self_test(
    run_dir: Path, scenario: Scenario, facts: RunFacts, derived: Derived, watch: Stopwatch
) -> dict[str, str]:
    """Run the self-test on its own engine and return the outcomes."""
    from urteil.harness.verify.self_test import run_self_test

    with watch("verify/canary"):
        return run_self_test(run_dir, scenario, facts, derived)


def _doubt_damaged_tables(
    judged: Sequence[GuaranteeResult], report: ValidationReport
) -> list[GuaranteeResult]:
    """Violations are unknown if they rest on a table that may lack rows."""
    return [
        _as_unknown(result, report.damage_of(GUARANTEES[result.name].evidence()))
        for result in judged
    ]


def _doubt_times(
    judged: Sequence[GuaranteeResult], clock_defects: Sequence[str], derived: Derived
) -> list[GuaranteeResult]:
    """With wrong clocks, violations are unknown if they, or what permits them, rest on times."""
    if not clock_defects:
        return list(judged)
    return [
        _as_unknown(result, clock_defects[0])
        if GUARANTEES[result.name].compares_times or may_be_excused(result, derived.partitions)
        else result
        for result in judged
    ]


def _doubt_lateness(
    judged: Sequence[GuaranteeResult], run_dir: Path, facts: RunFacts
) -> list[GuaranteeResult]:
    """With an overloaded host or a failed lab, violations that these may cause are unknown."""
    late = host_overload.describe_overload(run_dir) if facts.healed else LOST
    return [
        _as_unknown(result, late)
        if GUARANTEES[result.name].host_load_excuses
        or (not facts.healed and GUARANTEES[result.name].failed_lab_excuses)
        else result
        for result in judged
    ]


def _add_self_test(outcomes: dict[str, str], result: Result) -> None:
    """Add the self-test's outcomes; a damage that was not found keeps the verdict from PASS."""
    result.canary = outcomes
    missed = [f"{name} ({how})" for name, how in outcomes.items() if not _is_found(how)]
    if missed:
        result.reasons.append(f"the canary's damage was not found: {'; '.join(missed)}")
        if result.verdict is Verdict.PASS:
            result.verdict = Verdict.UNKNOWN


def empty_result(facts: RunFacts, engine: str, reasons: list[str]) -> Result:
    """A result that names the run, without any judgement."""
    return Result(
        verdict=Verdict.UNKNOWN,
        reasons=reasons,
        seed=facts.seed,
        scenario=facts.scenario,
        target=facts.target,
        runtime=facts.runtime,
        mutant=facts.mutant,
        command=facts.command,
        run=facts.run,
        engine=engine,
        versions=facts.versions,
        seconds=dict(facts.seconds),
        counts={},
        guarantees=[],
        faults=[],
    )


def _as_unknown(result: GuaranteeResult, doubt: str | None) -> GuaranteeResult:
    """The result, unknown if damaged evidence or the lab may have caused its violations."""
    if doubt is None or result.status is not Status.VIOLATED:
        return result
    return msgspec.structs.replace(result, status=Status.UNKNOWN, reason=doubt)


def _is_found(outcome: str) -> bool:
    return outcome.startswith(("found", "not tried"))


def prepare(run_dir: Path, scenario: Scenario, facts: RunFacts) -> Derived:
    """All derived tables."""
    derived = derive(run_dir, scenario, facts, damaged_clients(run_dir))
    derived.tables["recoveries"] = impact.recoveries(derived, scenario, facts)
    derived.tables["windows"] = impact.windows(derived)
    derived.tables["progress_in_faults"] = impact.progress_rows(derived, scenario, facts)
    clients = evidence.rows(run_dir, "clients")
    derived.tables["progress_after_faults"] = resumed_progress_rows(derived, scenario, clients)
    derived.tables["progress_without_faults"] = undisturbed_progress_rows(derived, scenario, facts)
    derived.tables["prompt_reads"] = prompt_read_rows(run_dir, derived, scenario, facts, clients)
    derived.tables["prompt_sends"] = prompt_send_rows(run_dir, derived, facts, clients)
    derived.tables["transaction_progress"] = transaction_progress_rows(derived, scenario, facts)
    derived.tables["commit_breaks"] = commit_break_rows(
        run_dir, derived, Coordinators.derive(derived), scenario
    )
    return derived


def examine(
    engine: Engine, run_dir: Path, derived: Derived, watch: Stopwatch
) -> tuple[list[GuaranteeResult], list[Row]]:
    """Build the shared tables and judge every guarantee; also the acknowledgements by tick."""
    compacted = any(part["compacted"] and part["in_run"] for part in derived.partitions)
    with watch("verify/shared tables"):
        open_views(engine, run_dir, derived)
        shared_tables.build(
            engine, compacted=compacted, transactions=bool(derived.tables["txn_p"]),
            logless=derived.logless, expected=derived.expected,
        )  # fmt: skip
    with watch("verify/guarantees"):
        return _judge_guarantees(engine, run_dir, derived)


def _judge_guarantees(
    engine: Engine, run_dir: Path, derived: Derived
) -> tuple[list[GuaranteeResult], list[Row]]:
    ticks = engine.query("SELECT * FROM ticks")
    present = {table for table in SCHEMAS if evidence.files(run_dir, table)}
    present = {table for table in present if evidence.row_count(run_dir, table)}
    places = Places(derived)
    judged = map_in_order(
        engine.workers,
        lambda guarantee: check(engine, guarantee, places, present),
        GUARANTEES.values(),
    )
    return judged, ticks


def _result(
    run_dir: Path,
    scenario: Scenario,
    facts: RunFacts,
    derived: Derived,
    judged: Sequence[GuaranteeResult],
    ticks: Sequence[Row],
    doubts: list[str],
    engine: Engine,
) -> Result:
    by_name = {result.name: result for result in judged}
    doubts = doubts + _unknown_guarantees(scenario, facts, by_name, doubts)
    broken = [
        f"{result.name}: {_count_violations(result)}: {result.findings[0].sentence}"
        for result in judged
        if result.status is Status.VIOLATED
    ]
    verdict = Verdict.FAIL if broken else Verdict.UNKNOWN if doubts else Verdict.PASS
    result = empty_result(facts, engine.name, broken + doubts)
    result.versions = facts.versions | engine.versions
    result.verdict = verdict
    result.counts = _counts(run_dir, ticks)
    result.guarantees = list(judged)
    result.faults = impact.fault_results(derived, derived.tables["recoveries"], ticks)
    result.must_find = {
        name: name in by_name and bool(by_name[name].permitted or by_name[name].violations)
        for name in scenario.must_find
    }
    return result


def _count_violations(result: GuaranteeResult) -> str:
    count = count_text(result.violations, "violation")
    return count if result.violations == 1 else f"{count}, the first"


def _unknown_guarantees(
    scenario: Scenario,
    facts: RunFacts,
    by_name: dict[str, GuaranteeResult],
    known: Sequence[str],
) -> list[str]:
    """Guarantees of unknown status, and the scenario's own guarantees that were not judged, though
    the brokers have what they require."""
    unknown = [result for result in by_name.values() if result.status is Status.UNKNOWN]
    doubts = [f"{result.name}: {result.reason}" for result in unknown if result.reason not in known]
    for name in scenario.guarantees:
        if name not in by_name:
            doubts.append(f"no guarantee is named {name}")
        elif describe_missing(GUARANTEES[name].requires, facts.lacks):
            continue
        elif not _is_judged(name, by_name):
            reason = by_name[name].reason
            doubts.append(f"the scenario's own guarantee {name} was not judged: {reason}")
    return doubts


def _is_judged(name: str, by_name: dict[str, GuaranteeResult]) -> bool:
    """Whether the guarantee, or one that was split from it, was judged."""
    split = [other.name for other in GUARANTEES.values() if other.split_from == name]
    return any(by_name[part].status is not Status.NOT_JUDGED for part in (name, *split))


def _counts(run_dir: Path, ticks: Sequence[Row]) -> dict[str, int]:
    counts = {table: evidence.row_count(run_dir, table) for table in _COUNTED}
    return counts | {"acknowledged": sum(row["acks"] for row in ticks)}
