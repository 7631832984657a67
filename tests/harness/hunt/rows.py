"""Example rows of simulated runs."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.hunt import Job, Row


def row(
    scenario: str = "s",
    seed: int = 1,
    verdict: str = "PASS",
    *,
    target: str = "urteil",
    mutant: str | None = None,
    violated: dict[str, int] | None = None,
    ran: bool | None = None,
    run: Path | None = None,
) -> Row:
    """A run of 40 s; each violated guarantee was first found 7.5 s after the load's begin."""
    counts = violated or {}
    return Row(
        job=Job(scenario=scenario, seed=seed, target=target, mutant=mutant),
        verdict=verdict,
        seconds=40.0,
        at="2026-01-02 03:04:05",
        run="" if run is None else str(run),
        reasons=["because"] if verdict != "PASS" else [],
        violated=counts,
        first_s=dict.fromkeys(counts, 7.5),
        mutant_ran=ran,
    )
