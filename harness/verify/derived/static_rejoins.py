"""Static members that rejoined before their sessions timed out: rows of the table `static_rejoins`.

The group keeps the partitions of a static member for it, without a rebalance (KIP-345): the new
process continues in the generation in which its predecessor died. This is judged if the member was
assigned partitions within the session timeout, no other member joined or left, and no fault acted.
"""

from __future__ import annotations

from pathlib import Path

from urteil.chaos.effects import Effect
from urteil.harness.evidence.acts import KILL
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.member_departures import QUIET_NS, disturbances
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.undisturbed_intervals import session_timeout_ns
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import SECOND_NS

SLACK_NS = SECOND_NS
"""An assignment this long before the end of a session proves that the member had rejoined in time.
The session ends one timeout after the last heartbeat, and members send three or more per timeout.
"""

Session = tuple[str, int]
SessionEvents = list[tuple[int, int, int, str]]
"""Time, generation, partition and event."""


def rejoin_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """One row for each death of a static member whose successor rejoined in time: the generation in
    which it died, and the generation of its successor's first assignment."""
    if facts.runtime == IMPORTED:
        return []
    session_ns, events = session_timeout_ns(scenario), _session_events(run_dir, small)
    disturbed = disturbances(small, Effect.KILLS_CLIENTS)
    kills = sorted((op["complete_ns"], op["subject"]) for op in small.ops if op["act"] == KILL)
    rows: list[Row] = []
    for died_ns, client in kills:
        old = next((known for known in small.clients if known["client"] == client), None)
        if old is None or old["instance"] is None:
            continue
        had = [event for event in events.get((client, old["session"]), ()) if event[0] <= died_ns]
        new = _successor(small, old, died_ns)
        assignments = (
            [event for event in events.get(new, ()) if event[3] == "assigned"] if new else []
        )
        if not had or had[-1][3] != "assigned" or not assignments:
            continue
        rejoined_ns, generation, p, _ = assignments[0]
        absence = Interval(died_ns, rejoined_ns)
        if (
            rejoined_ns - died_ns >= session_ns * 2 // 3 - SLACK_NS
            or any(disturbance.meets(absence) for disturbance in disturbed)
            or any(
                died_ns - session_ns < ns <= rejoined_ns and not _is_replaced(small, kill, ns)
                for ns, kill in kills
                if kill != client
            )
            or _has_rebalanced(
                small, events, old["group"], {(client, old["session"]), new}, absence
            )
        ):
            continue
        rows.append(
            {"n": len(rows), "client": client, "grp": old["group"], "p": p, "died_ns": died_ns}
            | {"rejoined_ns": rejoined_ns}
            | {"old_generation": had[-1][1], "new_generation": generation}
        )
    return rows


def _session_events(run_dir: Path, small: SmallEvidence) -> dict[Session, SessionEvents]:
    """The assignments and revocations of each session, in order."""
    by_session: dict[Session, SessionEvents] = {}
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        known = p is not None and None not in (row["at_ns"], row["session"], row["generation"])
        if known and row["event"] in ("assigned", "revoked", "lost") and row["generation"] >= 0:
            event = row["at_ns"], row["generation"], p or 0, row["event"]
            by_session.setdefault((row["client"], row["session"]), []).append(event)
    return {session: sorted(events) for session, events in by_session.items()}


def _is_replaced(small: SmallEvidence, client: str, at_ns: int) -> bool:
    """Whether a later session had replaced a static member by then; the end of the old session does
    not affect the group."""
    old = next((known for known in small.clients if known["client"] == client), None)
    if old is None or old["instance"] is None or old["begin_ns"] is None:
        return False
    later = _successor(small, old, old["begin_ns"])
    return later is not None and any(
        (row["client"], row["session"]) == later and row["begin_ns"] < at_ns
        for row in small.clients
    )


def _successor(small: SmallEvidence, old: Row, died_ns: int) -> Session | None:
    """The next session of the same instance."""
    later = [
        (row["begin_ns"], row["client"], row["session"])
        for row in small.clients
        if row["instance"] == old["instance"] and row["group"] == old["group"]
        and row["begin_ns"] is not None and row["begin_ns"] > died_ns
    ]  # fmt: skip
    return min(later)[1:] if later else None


def _has_rebalanced(
    small: SmallEvidence,
    events: dict[Session, SessionEvents],
    group: str,
    own: set[Session | None],
    interval: Interval,
) -> bool:
    """Whether another member of the group joined or left in the interval, or a rebalance was under
    way when it began."""
    from_ns = interval.begin_ns - QUIET_NS
    for row in small.clients:
        session = row["client"], row["session"]
        if row["group"] != group or session in own:
            continue
        times = [at for at in (row["begin_ns"], row["end_ns"]) if at is not None]
        if any(from_ns < at <= interval.end_ns for at in times):
            return True
    moves = [at for session in events for at, _, _, _ in events[session]]
    return any(from_ns < at <= interval.begin_ns for at in moves)
