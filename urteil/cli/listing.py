"""`urteil list KIND`: the names that other commands accept."""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from urteil.cli.options import json_option

Row = dict[str, str]
DETAILS = (
    "promise", "family", "effects", "selectors", "clients", "judged by", "libraries", "options",
    "values", "default", "proof", "expiry", "runtimes", "targets", "processes", "promises",
    "variants", "acts", "issue", "releases", "fixed in", "played on", "room", "plane", "tables",
)  # fmt: skip


def _scenarios() -> list[Row]:
    from urteil.harness.scenarios import SCENARIOS

    return [{"name": s.name, "about": s.about} for s in SCENARIOS.values()]


def _faults() -> list[Row]:
    from urteil.chaos.faults import FAULTS

    return [
        {
            "name": name,
            "about": fault.about,
            "family": fault.family,
            "effects": ", ".join(sorted(fault.effects)),
            "selectors": fault.selectors,
            "options": "; ".join(f"{name}: {option}" for name, option in fault.options.items()),
            "proof": fault.proves,
            "expiry": f"{fault.expiry_s:g} s after its planned end, or when the lab dies",
            "runtimes": ", ".join(fault.on_runtimes),
            "targets": ", ".join(fault.on_targets),
        }
        for name, fault in FAULTS.items()
    ]


def _roles() -> list[Row]:
    from urteil.chaos.node_selectors import ROLES

    return [{"name": name, "about": about} for name, about in ROLES.items()]


def _guarantees() -> list[Row]:
    from urteil.harness.verify.guarantees import GUARANTEES

    return [
        {
            "name": g.name,
            "about": g.about,
            "promise": " ".join(g.promise.split()),
            "source": g.source,
        }
        for g in GUARANTEES.values()
    ]


def _mutants() -> list[Row]:
    from urteil.suites.mutants import MUTANTS

    return [
        {"name": m.name, "about": m.about, "scenario": m.scenario, "guarantee": m.guarantee}
        for m in MUTANTS.values()
    ]


def _bugs() -> list[Row]:
    from urteil.harness.known_bugs import KNOWN_BUGS

    return [
        {
            "name": bug.name,
            "about": bug.about,
            "scenario": bug.scenario,
            "guarantee": bug.guarantee,
            "issue": bug.issue,
            "releases": bug.releases,
            "fixed in": bug.fixed_in,
            "played on": f"kafka:{bug.broken}, kafka:{bug.fixed}",
        }
        for bug in KNOWN_BUGS.values()
    ]


def _targets() -> list[Row]:
    from urteil.harness.targets import TARGETS

    return [{"name": name, "about": about} for name, about in TARGETS.items()]


def _clients() -> list[Row]:
    from urteil.harness.clients.kind import client_kinds
    from urteil.harness.clients.options import describe

    return [
        {
            "name": kind.name,
            "about": kind.about,
            "judged by": ", ".join(kind.judged_by),
            "clients": kind.prefix if kind.is_single else f"{kind.prefix}1, {kind.prefix}2 ...",
            "libraries": "" if kind.work is None else ", ".join(kind.libraries),
            "options": "; ".join(
                f"{row.name}={row.default}" if row.default else row.name
                for options in kind.options
                for row in describe(options)
            ),
        }
        for kind in client_kinds().values()
    ]


def _applications() -> list[Row]:
    from urteil.harness.clients.applications import applications
    from urteil.harness.clients.options import describe

    return [
        {
            "name": application.name,
            "about": application.about,
            "processes": ", ".join(
                f"{process.prefix}1 ... ({process.role})" for process in application.processes
            ),
            "promises": application.promise + (", in order" if application.is_ordered else ""),
            "options": "; ".join(
                f"{row.name}={row.default}" if row.default else row.name
                for options in application.options
                for row in describe(options)
            ),
            "variants": ", ".join(application.variants),
            "acts": ", ".join(application.acts),
        }
        for application in applications().values()
    ]


def _states() -> list[Row]:
    from urteil.harness.verify.rare_states import ROOMS

    return [
        {"name": s.name, "about": s.about, "room": room, "plane": s.plane,
         "tables": ", ".join(s.reads)}
        for room, states in ROOMS.items() for s in states
    ]  # fmt: skip


def _workloads() -> list[Row]:
    from urteil.harness.clients.workload_kinds import WORKLOAD_KINDS

    return [
        {"name": kind.name, "about": f"{kind.producers}; {kind.consumers}"}
        for kind in WORKLOAD_KINDS.values()
    ]


def _options() -> list[Row]:
    from urteil.harness.clients.kind import declared_options
    from urteil.harness.clients.options import describe

    return [
        {"name": row.name, "about": row.about, "values": row.values, "default": row.default}
        for options in declared_options()
        for row in describe(options)
    ]


KINDS: dict[str, Callable[[], list[Row]]] = {
    "scenarios": _scenarios,
    "faults": _faults,
    "roles": _roles,
    "guarantees": _guarantees,
    "mutants": _mutants,
    "bugs": _bugs,
    "targets": _targets,
    "clients": _clients,
    "applications": _applications,
    "workloads": _workloads,
    "workload-options": _options,
    "states": _states,
}


@click.command("list", short_help="List scenarios, faults, guarantees, mutants, clients ...")
@click.argument("kind", type=click.Choice(sorted(KINDS)), metavar="KIND")
@json_option("Print a JSON array of objects with name and about.")
def list_command(kind: str, as_json: bool) -> None:
    """List the names of a KIND, each with a sentence.

    KIND is `scenarios`, `faults`, `roles` (targets of faults), `guarantees`, `mutants`, `bugs`
    (published ones), `targets`, `workloads`, `clients`, `applications`, `workload-options` or
    `states` (rare ones that runs reach).
    """
    rows = KINDS[kind]()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        extra = f"  [{row['scenario']} -> {row['guarantee']}]" if "scenario" in row else ""
        click.echo(f"{row['name']:<{width}}  {row['about']}{extra}")
        for detail in DETAILS:
            if row.get(detail):
                click.echo(f"{'':<{width}}    {detail}: {row[detail]}")
