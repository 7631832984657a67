"""`urteil schedule`: the schedule of a seed, without playing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from urteil.cli import completion
from urteil.cli.options import SEED, Number, controllers_option, json_option, quorum_option
from urteil.cli.requested_scenario import requested_scenario
from urteil.cli.run import schedule_option

if TYPE_CHECKING:
    import msgspec

    from urteil.harness.scenario import Scenario
    from urteil.harness.schedule import Entry


@click.command(short_help="Print the schedule of a seed without playing it.")
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option("--seed", type=SEED, help="Seed of the schedule.  [default: random]")
@click.option("--target", default=None, help="A target of `urteil run`.")
@click.option("--runtime", type=click.Choice(["process", "docker"]),
              help="Where the nodes would run.")  # fmt: skip
@click.option(
    "--brokers", type=click.IntRange(1, 9), help="Number of brokers.  [default: the scenario's]"
)
@click.option(
    "--zookeepers", type=click.IntRange(1, 5),
    help="Number of ZooKeeper servers.  [default: the scenario's]",
)  # fmt: skip
@controllers_option()
@quorum_option()
@click.option("--duration-s", type=Number(0, 86_400), help="Seconds of load.")
@click.option("--rate", type=Number(0, 1_000_000), help="Records/s over all producers.")
@schedule_option
@json_option("Print the schedule as a file for --schedule.")
def schedule(scenario: str, as_json: bool, **arguments: Any) -> None:
    """Print the schedule that `urteil run SCENARIO --seed N` would play.

    For a scenario that is drawn as a whole, also print its cluster, clients and topics, and what
    their settings permit. With --schedule, check a file and print its schedule.
    """
    from urteil.harness.scenarios import SCENARIOS
    from urteil.harness.schedule import schedule_of, text_of
    from urteil.harness.verify.plurals import count_text

    requested = requested_scenario(scenario, {"mutant": None, "coverage": False, **arguments})
    planned = schedule_of(requested)
    if as_json:
        click.echo(text_of(planned), nl=False)
        return
    click.echo(
        f"{planned.scenario}, seed {planned.seed}: {count_text(len(planned.faults), 'fault')} in "
        f"{planned.duration_s:g} s of load at {planned.rate_records_per_s:g} records/s"
    )
    if SCENARIOS[scenario].bounds is not None:
        _print_properties(requested)
    for line in lines_of(planned.faults):
        click.echo(line)


def _print_properties(scenario: Scenario) -> None:
    """Print the differences of a scenario from the defaults, by part, and its permits."""
    from urteil.harness.permits import permits_of
    from urteil.harness.permitted_deviations import Permit

    load, given = scenario.workload, permits_of(scenario)
    parts = [
        ("cluster", _differences(scenario.cluster, "config")),
        ("brokers", scenario.cluster.config),
        ("clients", {"kind": load.kind} | _differences(load, "kind", "topics", "options")),
        ("options", load.options),
        *(
            (topic.name, _differences(topic, "name", "config") | topic.config)
            for topic in load.topics
        ),
    ]
    for part, properties in parts:
        text = ", ".join(f"{name}={value}" for name, value in properties.items())
        click.echo(f"  {part}: {text or 'the defaults'}")
    for permit in (permit for permit in Permit if permit in given):
        click.echo(f"  permits: {permit.value}")


def _differences(spec: msgspec.Struct, *skipped: str) -> dict[str, Any]:
    import msgspec

    return {
        field.name: value
        for field in msgspec.structs.fields(spec)
        if field.name not in skipped and (value := getattr(spec, field.name)) != field.default
    }


def lines_of(faults: Sequence[Entry]) -> list[str]:
    """One line for each fault: begin, name, target, length, options."""
    cells = [
        (moment(fault), fault.fault, fault.target, f"for {fault.duration_s:.1f} s", _options(fault))
        for fault in faults
    ]
    widths = [max((len(row[n]) for row in cells), default=0) for n in range(5)]
    padded = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells)
    return [f"  {line}".rstrip() for line in padded]


def _options(entry: Entry) -> str:
    alone = "alone " if entry.alone else ""
    return alone + " ".join(f"{name}={value}" for name, value in entry.options.items())


def moment(entry: Entry) -> str:
    """The begin of a fault, in words."""
    if entry.after_acks is not None:
        later = f" + {entry.at_s:.1f} s" if entry.at_s else ""
        return f"after {entry.after_acks} acks{later}"
    if entry.after_event is not None:
        return f"next {entry.after_event} from {entry.at_s or 0:.1f} s"
    return f"at {entry.at_s:.1f} s"
