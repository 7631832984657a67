"""Whether enough happened in a run to judge it: faults acted, clients sent, checks came to an end.

Each reason makes the verdict UNKNOWN, never FAIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from urteil.chaos.effects import Effect
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify.derived.fault_effects import has_only
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row, targets_of

_STOPS_CLIENTS = frozenset({Effect.KILLS_CLIENTS, Effect.PAUSES_CLIENTS})


def insufficiencies(
    scenario: Scenario,
    facts: RunFacts,
    derived: Derived,
    ticks: Sequence[Row],
    sends_in_windows: Mapping[int, int],
) -> Iterator[str]:
    """A sentence for each thing of which there was too little.

    `ticks` are the acknowledgements by time, `sends_in_windows` the sends that were made or
    awaited, by number of the fault.
    """
    for client in sorted(derived.damaged):
        yield f"the journal of {client} did not end properly"
    yield from _faults(derived.faults)
    yield from _traffic(scenario, facts, derived, ticks)
    if facts.runtime != IMPORTED:
        yield from _attempts(derived.faults, sends_in_windows)
    yield from _unfinished_searches(derived)
    if facts.mutant is not None and facts.mutant_ran is False:
        yield f"the patched line of the mutant {facts.mutant} never ran"


def _faults(faults: Sequence[Row]) -> Iterator[str]:
    for fault in faults:
        if not fault["acted"]:
            yield f"fault {fault['fault']} did not act: {fault['proof'] or 'no proof'}"
        elif fault["healed_ns"] is None:
            yield f"fault {fault['fault']} was never healed"


def unrecorded_faults(scenario: Scenario, derived: Derived) -> str | None:
    """A reason if fewer faults were recorded than scheduled: their excuses would be missing."""
    scheduled, have = len(scenario.faults), len(derived.faults)
    if have >= scheduled:
        return None
    return f"only {have} of {scheduled} faults left a row in the evidence"


def _traffic(
    scenario: Scenario, facts: RunFacts, derived: Derived, ticks: Sequence[Row]
) -> Iterator[str]:
    """Too little traffic before the first fault, after the last one, or over the whole run.

    Faults of an imported history have no schedule that leaves time around them.
    """
    begun = min((fault["begin_ns"] for fault in derived.faults), default=None)
    healed = max((fault["healed_ns"] or 0 for fault in derived.faults), default=None)
    counts = {"in all": sum(row["acks"] for row in ticks)}
    if begun is not None and healed is not None and facts.runtime != IMPORTED:
        counts["before the faults"] = sum(r["acks"] for r in ticks if r["last_ns"] <= begun)
        counts["after the faults"] = sum(r["acks"] for r in ticks if r["first_ns"] >= healed)
    for when, count in counts.items():
        if count < scenario.minimum_acks:
            minimum = scenario.minimum_acks
            yield f"only {count} acknowledgements {when}, at least {minimum} are required"


def _attempts(faults: Sequence[Row], sends_in_windows: Mapping[int, int]) -> Iterator[str]:
    """Faults without a send. A fault may prevent acknowledgements, but sends only by stopping the
    clients that make them."""
    for number, fault in enumerate(faults):
        if has_only(fault, _STOPS_CLIENTS):
            continue
        if fault["acted"] and not sends_in_windows.get(number):
            yield f"there was no send during {fault['fault']} on {', '.join(targets_of(fault))}"


def _unfinished_searches(derived: Derived) -> Iterator[str]:
    """Registers with more possible orders than a search tries."""
    names = {part["p"]: f"{part['topic']}-{part['partition']}" for part in derived.partitions}
    for row in derived.tables["commit_breaks"]:
        if row["kind"] == "unfollowed":
            yield (
                f"more orders of the commits of {row['grp']} in {names[row['p']]} are possible "
                "than commit_register tries"
            )
