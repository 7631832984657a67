"""The page of rare states, by room."""

from __future__ import annotations

from docs.reference_pages.markdown import code, codes, page, table
from urteil.harness.verify.rare_states import ROOMS, RareState

ABOUT = """\
Rare situations of a cluster and its clients whose reaching is counted in every run. They judge
nothing: they show what scenarios exercise. [States reached](../guide/states.md) says how they are
counted and shown. A state is counted only in runs whose evidence has rows in all of its tables:
tables of the [evidence](evidence.md), and small tables that are derived from them (`versions`,
`absences`, `presences`, `terms`, `moves` and `coordinators` from `states`, `strikes` from `faults`,
`epoch_starts` from `logs`, `views` from `samples`). This page is generated from
`harness/verify/rare_states/` by `make docs`."""


def render() -> dict[str, str]:
    sections = [
        f"## {room.capitalize()}\n\n{table(('state', 'reached when', 'tables'), map(_row, states))}"
        for room, states in ROOMS.items()
    ]
    return {"states.md": page("Rare states", ABOUT, *sections)}


def _row(state: RareState) -> tuple[str, str, str]:
    plane = {"": "", "kraft": " Only with KRaft.", "zookeeper": " Only with ZooKeeper."}
    return code(state.name), state.about + plane[state.plane], codes(state.reads)
