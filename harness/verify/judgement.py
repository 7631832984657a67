"""From a run's evidence to its verdict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, Scenario, load_facts, load_scenario, save
from urteil.harness.stopwatch import Stopwatch
from urteil.harness.verify import evidence, shared_tables
from urteil.harness.verify.check import Places, check
from urteil.harness.verify.derived import impact
from urteil.harness.verify.derived.committed_positions import commit_breaks
from urteil.harness.verify.derived.coordinators import Coordinators
from urteil.harness.verify.derived.derive import derive
from urteil.harness.verify.derived.expected_progress import quiets, resumptions, standstills
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.engine import Engine, open_engine, open_views
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.plurals import counted
from urteil.harness.verify.result import GuaranteeResult, Result, Status, Verdict
from urteil.harness.verify.stored_findings import save_rest
from urteil.harness.verify.threads import map_in_order, threads
from urteil.harness.verify.validation import (
    clocks,
    completeness,
    host_overload,
    missing_values,
    reasons,
)
from urteil.harness.verify.validation.excuses import may_be_excused
from urteil.harness.verify.validation.foreign_rows import strangers
from urteil.harness.verify.validation.readable_evidence import Sound, sound
from urteil.harness.verify.validation.settings_numbers import numbers
from urteil.harness.verify.validation.unread_records import unread

TIMED = frozenset(
    {"future_read", "stale_append", "ack_below_min_isr", "no_progress", "latest_went_back"}
    | {"two_leaders", "slow_recovery", "retained_too_short", "compacted_too_early"}
    | {"stale_value_visible", "resurrected_key", "precommitted_read", "zombie_write"}
    | {"hanging_txn", "torn_txn", "poll_skip", "offsets_not_atomic"}
    | {"end_below_ack", "causal_loss", "tombstone_too_early", "disagreement", "time_index_wrong"}
    | {"zombie_commit", "commit_went_back", "commit_register", "generation_went_back"}
    | {"unauthorised", "quota_exceeded", "no_delivery", "kept_too_long", "wrong_answer"}
)
"""Guarantees that compare times of several clients."""

EXCUSED = frozenset(
    {"lost_write", "unseen", "loss_not_a_suffix", "inconsistent_offset", "misplaced_ack"}
    | {"vanished_read", "nonmonotonic_poll", "commit_beyond_processed", "aborted_read"}
    | {"latest_value_lost", "offset_renumbered", "sequence_gap", "processed_twice", "unprocessed"}
)
"""Others of which some violations are permitted by when it was that they were sent, or known."""

AVAILABILITY = frozenset(
    {"no_progress", "no_delivery", "slow_recovery", "disagreement", "kept_too_long", "hanging_txn"}
    | {"wrong_answer"}
)
"""Guarantees that a lab which lost a part of its own, or has a slow machine, would break by that
alone."""
LOST = "not every part of the lab lived, or was healed: it may be the lab that is late"

_COUNTED = ("sends", "reads", "polls", "passes", "replicas", "states", "faults")

_PLACELESS = """(s.outcome IN ('info', 'fail') AND s.partition IS NULL
  AND s.partition_intended IS NULL
  AND s.topic_id IN (SELECT k.topic_id FROM parts k WHERE k.ours = 1))"""
"""Sends that were not acknowledged, of which only the topic is known."""

_TALLY = f"""
SELECT 'sends' AS what, w.n, COUNT(*) AS found FROM sends s
JOIN windows w ON s.invoke_ns >= w.begin_ns AND s.invoke_ns < w.end_ns GROUP BY w.n
UNION ALL
SELECT 'stray sends', -1, COUNT(*) FROM sends s LEFT JOIN parts p ON s.topic_id = p.topic_id
  AND COALESCE(s.partition, s.partition_intended) = p.partition
WHERE (p.p IS NULL OR (p.ours = 0 AND p.gone = 0))
  AND NOT COALESCE({_PLACELESS}, FALSE)
UNION ALL
SELECT 'placeless sends', -1, COUNT(*) FROM sends s WHERE {_PLACELESS}
UNION ALL
SELECT 'stray reads', -1, COUNT(*) FROM reads r LEFT JOIN parts p ON r.topic_id = p.topic_id
  AND r.partition = p.partition
WHERE p.p IS NULL OR (p.ours = 0 AND p.gone = 0)
UNION ALL
SELECT 'blank sends', -1, COUNT(*) FROM sends s
WHERE s.value_id IS NULL OR COALESCE(s.outcome, '') NOT IN ('ok', 'fail', 'info')
  OR s.invoke_ns IS NULL
  OR (s.outcome = 'ok' AND s.complete_ns IS NULL) OR (s.offset >= 0 AND s.partition IS NULL)
UNION ALL
SELECT 'doubled sends', -1, COUNT(*) FROM slots s WHERE s.acked > 1
UNION ALL
SELECT 'alike sends', -1, COUNT(*) FROM (SELECT o.value_id FROM odd o WHERE o.sent = 1
  GROUP BY o.value_id HAVING MIN(o.client) <> MAX(o.client) OR MIN(o.op) <> MAX(o.op)) k
UNION ALL
SELECT 'turned sends', -1, COUNT(*) FROM sends s WHERE s.complete_ns < s.invoke_ns
UNION ALL
SELECT 'turned polls', -1, COUNT(*) FROM polls e WHERE e.complete_ns < e.invoke_ns
UNION ALL
SELECT 'turned commits', -1, COUNT(*) FROM commits e WHERE e.complete_ns < e.invoke_ns
UNION ALL
SELECT 'turned commit_reads', -1, COUNT(*) FROM commit_reads e WHERE e.complete_ns < e.invoke_ns
UNION ALL
SELECT 'turned accesses', -1, COUNT(*) FROM accesses e WHERE e.complete_ns < e.invoke_ns
UNION ALL
SELECT 'turned offset_answers', -1, COUNT(*) FROM offset_answers e
WHERE e.complete_ns < e.invoke_ns
UNION ALL
SELECT 'turned passes', -1, COUNT(*) FROM passes e WHERE e.end_ns < e.begin_ns
UNION ALL
SELECT 'turned txns', -1, COUNT(*) FROM txns e
WHERE e.end_ns < e.begin_ns OR e.end_ns < e.commit_invoke_ns
"""
"""What trust asks of the large tables: sends in each fault's window, and rows nobody can judge."""


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
    scenario, facts, odd = numbers(load_scenario(run_dir), load_facts(run_dir))
    seconds, phases = dict(facts.seconds), list(facts.spent)
    watch = Stopwatch(seconds, phases)
    work = run_dir / "work" / "verify"
    _unlink(work.parent, work, run_dir / "findings")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with watch("verify"):
        try:
            with watch("verify/validation"):
                found = sound(run_dir, work)
            running = open_engine(engine, found.run_dir, work, master=master, session=session)
            try:
                asked = (scenario, facts, odd, watch)
                result = _judge(run_dir, running, found, *asked, canary=canary)
                save_rest(running, run_dir, result.guarantees)
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
    found: Sound,
    scenario: Scenario,
    facts: RunFacts,
    odd: list[str],
    watch: Stopwatch,
    *,
    canary: bool,
) -> Result:
    """The result; where it raises, that of what a deeper validation leaves of the evidence."""
    found.told += odd
    try:
        return _judged(running, found, scenario, facts, watch, canary=canary)
    except Exception as failure:
        found = sound(run_dir, running.work, deep=True)
        found.told += odd
        try:
            if not found.torn:
                raise failure
            return _judged(running, found, scenario, facts, watch, canary=canary)
        except Exception as again:
            text = f"{type(again).__name__}: {' '.join(str(again).split())[:300]}"
            told = [*found.told, f"the evidence cannot be judged: {text}"]
            return bare(facts, running.name, [*facts.problems, *told])


def _unlink(*folders: Path) -> None:
    """Links go where folders of the run are meant: what they lead to is not the run's to write."""
    for folder in folders:
        if folder.is_symlink():
            folder.unlink()


def _judged(
    running: Engine,
    found: Sound,
    scenario: Scenario,
    facts: RunFacts,
    watch: Stopwatch,
    *,
    canary: bool,
) -> Result:
    """The result of what can be read."""
    run_dir = found.run_dir
    with watch("verify/derived tables"):
        derived = prepare(run_dir, scenario, facts)
    with threads(1) if canary else nullcontext() as pool:
        asked = (run_dir, scenario, facts, derived, watch)
        song = pool.apply_async(_song, asked) if pool else None
        judged, ticks = examine(running, run_dir, derived, watch)
        tally = running.query(f"{_TALLY} UNION ALL {completeness.TALLY} ORDER BY what, n")
    doubts = _tears(found, facts, tally)
    if lacking := reasons.lacking_faults(scenario, derived):
        doubts.setdefault("faults", lacking)
    strange = strangers(run_dir, facts)
    doubts = missing_values.lacking(running, run_dir, judged) | strange | doubts
    judged = [_doubted(one, _doubt(one.name, doubts)) for one in judged]
    back = clocks.wrong(run_dir, facts)
    if boots := [*reasons.boots(run_dir, facts), *reasons.turned(tally), *back]:
        judged = [
            _doubted(one, boots[0])
            if one.name in TIMED or (one.name in EXCUSED and may_be_excused(one, derived.parts))
            else one
            for one in judged
        ]
    late = host_overload.crowded(run_dir) if facts.healed else LOST
    judged = [
        _doubted(one, late)
        if one.name in AVAILABILITY and (host_overload.excuses(one) or not facts.healed)
        else one
        for one in judged
    ]
    told = [*facts.problems, *found.told, *strange.values(), *doubts.values(), *back]
    told += reasons.reasons(run_dir, scenario, facts, derived, ticks, tally)
    told += completeness.lacking(run_dir, facts, derived, tally)
    told += unread(running, facts, derived)
    told = list(dict.fromkeys(told))
    result = _result(run_dir, scenario, facts, derived, judged, ticks, told, running)
    if song is not None:
        _listen(song.get(), result)
    return result


def _song(
    run_dir: Path, scenario: Scenario, facts: RunFacts, derived: Derived, watch: Stopwatch
) -> dict[str, str]:
    """What the canary sings beside the judgement, reading the evidence on an engine of its own."""
    from urteil.harness.verify.self_test import sing

    with watch("verify/canary"):
        return sing(run_dir, scenario, facts, derived)


def _tears(found: Sound, facts: RunFacts, tally: Sequence[Row]) -> dict[str, str]:
    """Tables whose rows may have gone missing, each with the sentence that says so."""
    told = {table: f"the evidence has no {table}" for table in reasons.empty(found.run_dir, facts)}
    told |= reasons.torn(found.run_dir) | found.torn
    if "manifest" in told:
        told |= dict.fromkeys(SCHEMAS, told["manifest"])
    records = ("sends", "reads", "replicas")
    for far in reasons.far(found.run_dir):
        told |= dict.fromkeys(records, far)
    for stray in reasons.strays(facts, tally):
        told |= {table: stray for table in ("sends", "reads") if f" {table} " in stray}
    for blank in reasons.blanks(tally):
        told["sends"] = blank
    return told | completeness.blanks(tally)


def _doubt(name: str, tears: dict[str, str]) -> str | None:
    """The first tear in what a guarantee rests on."""
    if not tears:
        return None
    used = GUARANTEES[name].evidence()
    return next((told for table, told in tears.items() if table in used), None)


def _listen(sung: dict[str, str], result: Result) -> None:
    """What the canary sang is told; a verdict that it did not hear is none."""
    result.canary = sung
    silent = [f"{name} ({told})" for name, told in sung.items() if not _heard(told)]
    if silent:
        result.reasons.append(f"the canary's damage was not found: {'; '.join(silent)}")
        if result.verdict is Verdict.PASS:
            result.verdict = Verdict.UNKNOWN


def bare(facts: RunFacts, engine: str, reasons: list[str]) -> Result:
    """A result that says what was played, and nothing was judged yet."""
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


def _doubted(one: GuaranteeResult, tear: str | None) -> GuaranteeResult:
    """A violation that damaged evidence, or the lab, may have made is none: it is unknown."""
    if tear is None or one.status is not Status.VIOLATED:
        return one
    return msgspec.structs.replace(one, status=Status.UNKNOWN, reason=tear)


def _heard(told: str) -> bool:
    return told.startswith(("found", "not tried"))


def prepare(run_dir: Path, scenario: Scenario, facts: RunFacts) -> Derived:
    """Derive the small tables."""
    derived = derive(run_dir, scenario, facts, reasons.damaged_clients(run_dir))
    derived.tables["recoveries"] = impact.recoveries(derived, scenario, facts)
    derived.tables["windows"] = impact.windows(derived)
    derived.tables["trials"] = impact.trials(derived, scenario, facts)
    clients = evidence.rows(run_dir, "clients")
    derived.tables["resumptions"] = resumptions(derived, scenario, clients)
    derived.tables["quiets"] = quiets(derived, scenario, facts)
    derived.tables["standstills"] = standstills(derived, scenario, facts)
    derived.tables["commit_breaks"] = commit_breaks(
        run_dir, derived, Coordinators.of(derived), scenario
    )
    return derived


def examine(
    engine: Engine, run_dir: Path, derived: Derived, watch: Stopwatch
) -> tuple[list[GuaranteeResult], list[Row]]:
    """Build the fused plan and judge every guarantee on it; the acknowledgements by tick."""
    compacted = any(part["compacted"] and part["ours"] for part in derived.parts)
    with watch("verify/shared tables"):
        open_views(engine, run_dir, derived)
        shared_tables.build(
            engine, compacted=compacted, transactions=bool(derived.tables["txn_p"]),
            logless=derived.logless,
        )  # fmt: skip
    with watch("verify/guarantees"):
        return _examined(engine, run_dir, derived)


def _examined(
    engine: Engine, run_dir: Path, derived: Derived
) -> tuple[list[GuaranteeResult], list[Row]]:
    ticks = engine.query("SELECT t.* FROM ticks t")
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
    by_name = {one.name: one for one in judged}
    doubts = doubts + _unjudged(scenario, by_name, doubts)
    broken = [
        f"{one.name}: {_broken(one)}: {one.findings[0].sentence}"
        for one in judged
        if one.status is Status.VIOLATED
    ]
    verdict = Verdict.FAIL if broken else Verdict.UNKNOWN if doubts else Verdict.PASS
    result = bare(facts, engine.name, broken + doubts)
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


def _broken(one: GuaranteeResult) -> str:
    told = counted(one.violations, "violation")
    return told if one.violations == 1 else f"{told}, the first"


def _unjudged(
    scenario: Scenario, by_name: dict[str, GuaranteeResult], told: Sequence[str]
) -> list[str]:
    """Checks that raised, and the scenario's own guarantees that nothing could show broken."""
    unknown = [one for one in by_name.values() if one.status is Status.UNKNOWN]
    doubts = [f"{one.name}: {one.reason}" for one in unknown if one.reason not in told]
    for name in scenario.guarantees:
        if name not in by_name:
            doubts.append(f"no guarantee is named {name}")
        elif (one := by_name[name]).status is Status.NOT_JUDGED:
            doubts.append(f"the scenario's own guarantee {name} was not judged: {one.reason}")
    return doubts


def _counts(run_dir: Path, ticks: Sequence[Row]) -> dict[str, int]:
    counts = {table: evidence.row_count(run_dir, table) for table in _COUNTED}
    return counts | {"acknowledged": sum(row["acks"] for row in ticks)}
