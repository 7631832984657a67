"""The scenario that the options of `urteil run` request. Combinations that cannot be played are
rejected here, before anything starts."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import check_hosts, check_metadata_nodes
from urteil.cli.suggestions import require_known
from urteil.harness.clients.libraries import VERIFIABLE

if TYPE_CHECKING:
    from urteil.harness.scenario import Scenario, WorkloadSpec


def requested_scenario(name: str, arguments: dict[str, Any]) -> Scenario:
    """The named scenario with the changes of the command line and its drawn schedule."""
    from urteil.harness.clients.workload import check_workload
    from urteil.harness.schedule import settle_schedule

    requested = _scenario(name, arguments)
    try:
        check_workload(requested.workload)
        return settle_schedule(requested)
    except ValueError as error:
        raise click.UsageError(f"{name}: {error}") from None


def _scenario(name: str, arguments: dict[str, Any]) -> Scenario:
    import msgspec

    from urteil.harness.clients.workload import why_beside_lab
    from urteil.harness.drawn_scenario import draw_scenario
    from urteil.harness.scenario import with_duration
    from urteil.harness.scenarios import SCENARIOS
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.external import PREFIX
    from urteil.harness.targets.mix import kinds_of, size_of

    replace = msgspec.structs.replace
    base = SCENARIOS[require_known("scenario", name, SCENARIOS)]
    base = draw_scenario(replace(base, seed=_seed(arguments)))
    target = arguments["target"] or base.target
    try:
        if target.startswith(PREFIX):
            base = _external(base, target, arguments)
        brokers = arguments["brokers"] or size_of(target, base.cluster.brokers)
        if not target.startswith(PREFIX):
            kinds_of(parse_target(target), brokers)
    except ValueError as error:
        raise click.UsageError(f"--target {target}: {error}") from None
    if arguments["mutant"] is not None and target != "urteil":
        raise click.UsageError(f"--mutant changes our own broker, not --target {target}")
    if arguments["coverage"]:
        _check_coverage(arguments, target, base.runtime)
    zookeepers, controllers = arguments["zookeepers"], arguments["controllers"]
    quorum = arguments["quorum"]
    check_metadata_nodes(target, zookeepers=zookeepers, controllers=controllers, quorum=quorum)
    if arguments["duration_s"] is not None:
        base = with_duration(base, arguments["duration_s"])
    cluster = replace(
        base.cluster,
        brokers=brokers,
        zookeepers=zookeepers or base.cluster.zookeepers,
        controllers=base.cluster.controllers if controllers is None else controllers,
        quorum=quorum or base.cluster.quorum,
    )
    base = replace(base, cluster=cluster)
    if arguments["schedule"] is not None:
        base = _by_file(base, arguments)
    runtime = _runtime(base, target, arguments["runtime"])
    hosts = arguments.get("hosts")
    names = arguments.get("client_hosts") or ""
    client_hosts = tuple(filter(None, (name.strip() for name in names.split(","))))
    check_hosts(
        arguments["runtime"],
        hosts,
        client_hosts,
        target=target,
        controllers=cluster.controllers,
    )
    workload = _workload(base, arguments)
    if client_hosts and (why := why_beside_lab(base.name, workload)):
        raise click.UsageError(f"--client-hosts: {why}")
    return replace(
        base,
        workload=workload,
        client_hosts=client_hosts,
        target=target,
        runtime=runtime,
        hosts=str(hosts or ""),
        mutant=_mutant(arguments["mutant"], runtime),
        coverage=arguments["coverage"],
    )


def _mutant(name: str | None, runtime: str) -> str | None:
    """The mutant, or the absolute path of a drawn bug. Raises UsageError for a mutant that does not
    exist, and for a drawn bug of other source, or if brokers cannot read its file."""
    from urteil.chaos.faults.base.fault import PROCESS
    from urteil.suites.drawn_bugs.bug import SUFFIX, load_bug
    from urteil.suites.mutants import MUTANTS
    from urteil.suites.source_hook import BROKER

    if name is None or not name.endswith(SUFFIX):
        return None if name is None else require_known("mutant", name, MUTANTS)
    try:
        bug = load_bug(Path(name))
        bug.change((BROKER.parent / bug.file).read_text())
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--mutant {name}: {error}") from None
    if runtime != PROCESS:
        raise click.UsageError(
            f"--mutant {name}: brokers read the drawn bug from this machine's files, which nodes "
            f"of --runtime {runtime} do not have: play it with --runtime {PROCESS}"
        )
    return str(Path(name).resolve())


def _check_coverage(arguments: dict[str, Any], target: str, base_runtime: str) -> None:
    """Raise UsageError for brokers whose lines the lab cannot record."""
    if target != "urteil":
        raise click.UsageError(f"--coverage: the lines are our own broker's, not --target {target}")
    if arguments["mutant"] is not None:
        raise click.UsageError("--coverage: the lines are those of the broker without --mutant")
    if (runtime := arguments["runtime"] or base_runtime) != "process":
        raise click.UsageError(
            f"--coverage: brokers write their lines into the run's folder: leave out --runtime "
            f"{runtime}, and play a scenario that runs as processes"
        )


def _workload(scenario: Scenario, arguments: dict[str, Any]) -> WorkloadSpec:
    """The scenario's workload with the changes of the command line."""
    import msgspec

    load = scenario.workload
    options = {
        name: arguments[name] for name in ("app", "promise") if arguments.get(name) is not None
    }
    if arguments.get("records") is not None:
        options["records"] = str(arguments["records"])
    for option in options:
        kind = "bulk" if option == "records" else "pipeline"
        if load.kind != kind:
            raise click.UsageError(
                f"--{option} needs the workload {kind}, for example `urteil run {kind}`; "
                f"{scenario.name} has the workload {load.kind}"
            )
    options |= _options(arguments.get("option", ()))
    changed: dict[str, Any] = {"options": load.options | options}
    if arguments.get("rate") is not None:
        changed["rate_records_per_s"] = arguments["rate"]
    if (library := arguments.get("client")) is not None:
        _check_library(scenario, library)
        changed["client"] = library
    if arguments.get("client") == VERIFIABLE:
        _check_verifiable(scenario)
    return msgspec.structs.replace(load, **changed)


def _options(words: Sequence[str]) -> dict[str, str]:
    """The workload options of `--option NAME=VALUE`."""
    for word in words:
        if "=" not in word:
            raise click.UsageError(f"--option {word}: give NAME=VALUE")
    return dict(word.split("=", 1) for word in words)


def _check_library(scenario: Scenario, library: str) -> None:
    from urteil.harness.clients.kind import libraries_of

    if library not in (possible := libraries_of(scenario)):
        raise click.UsageError(
            f"--client {library}: no client of {scenario.name} can use it; they can use "
            f"{', '.join(possible)}"
        )


def _check_verifiable(scenario: Scenario) -> None:
    from urteil.harness.clients.libraries.verifiable_tool import check_faults

    try:
        check_faults(scenario)
    except ValueError as error:
        raise click.UsageError(f"--client verifiable: {error}") from None


def _seed(arguments: dict[str, Any]) -> int:
    """The seed of the command line, or of the file of a schedule, or a random one."""
    from urteil.harness.schedule import ScheduleError, read_schedule

    seed: int | None = arguments["seed"]
    if seed is None and arguments["schedule"] is not None:
        try:
            seed = read_schedule(arguments["schedule"]).seed
        except ScheduleError as error:
            raise click.UsageError(str(error)) from None
    return secrets.randbelow(1_000_000) if seed is None else seed


def _by_file(scenario: Scenario, arguments: dict[str, Any]) -> Scenario:
    """The scenario with the schedule of a file."""
    import msgspec

    from urteil.harness.schedule import ScheduleError, load_schedule, with_schedule

    try:
        schedule = load_schedule(arguments["schedule"], scenario)
    except ScheduleError as error:
        raise click.UsageError(str(error)) from None
    scenario = with_schedule(scenario, schedule)
    if arguments["duration_s"] is not None:
        scenario = msgspec.structs.replace(scenario, duration_s=arguments["duration_s"])
    return scenario


def _external(scenario: Scenario, target: str, arguments: dict[str, Any]) -> Scenario:
    """The scenario with the size and the settings of an external cluster.

    Raises ValueError if the scenario cannot be played there.
    """
    import msgspec

    from urteil.harness.targets.external import PREFIX, fit_scenario, load_external

    file = load_external(Path(target.removeprefix(PREFIX)))
    for option in ("runtime", "hosts", "brokers", "zookeepers", "controllers", "quorum"):
        if arguments.get(option) is not None:
            raise ValueError(f"--{option} is the cluster's own, not the lab's; leave it out")
    scenario = fit_scenario(scenario, file)
    brokers = sum(name.startswith("b") for name in file.nodes) or len(file.bootstrap)
    keepers = sum(name.startswith("zk") for name in file.nodes) or int(bool(file.zookeeper))
    cluster = msgspec.structs.replace(scenario.cluster, brokers=brokers, zookeepers=keepers)
    return msgspec.structs.replace(scenario, cluster=cluster, runtime="external")


def _runtime(scenario: Scenario, target: str, arguments: str | None) -> str:
    """The runtime to use. Raises UsageError if the scenario cannot be played in it."""
    from urteil.chaos.faults import FAULTS
    from urteil.harness.run.playable import missing_in_runtime
    from urteil.harness.schedule import static_quorum_reason

    runtime: str = arguments or scenario.runtime
    if why := missing_in_runtime(scenario, target, runtime):
        raise click.UsageError(why)
    for fault in scenario.faults:
        if why := FAULTS[fault.fault].unsupported_reason(
            runtime=runtime, target=target, selector=fault.target, options=fault.options
        ):
            raise click.UsageError(f"{scenario.name}: {why}")
        if why := static_quorum_reason(fault, scenario):
            raise click.UsageError(f"{scenario.name}: {why}")
    return runtime
