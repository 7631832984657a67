"""`urteil faults check` and `hold`: faults by hand, on a cluster without load."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.chaos.similar_names import similar_names
from urteil.cli.options import SEED, Number, json_option
from urteil.cli.suggestions import require_known
from urteil.harness.wakeup_pipe import WakeupPipe

if TYPE_CHECKING:
    from urteil.chaos.fault_options import FaultOption, Option
    from urteil.harness.fault_check import FaultCheck
    from urteil.harness.fault_server import HeldFault

EXIT_NOT_SHOWN = 1
OBSERVE_S = 0.1


class FaultCommand(click.Command):
    """A command with a fault's name as its first argument, whose options may be written as its own:
    `--api Produce` becomes `-o api=Produce`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from urteil.chaos.faults import FAULTS

        own = {name for param in self.params for name in param.opts}
        kind = next((FAULTS[word] for word in args if word in FAULTS), None)
        declared = kind.options if kind else {}
        try:
            return super().parse_args(ctx, _with_fault_options(args, declared, own))
        except click.NoSuchOption as error:
            known = [*own, *(f"--{name.replace('_', '-')}" for name in declared)]
            near = similar_names(error.option_name, known)
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=ctx) from None


def _with_fault_options(
    args: Sequence[str], declared: Mapping[str, FaultOption], own: Collection[str]
) -> list[str]:
    words, result = iter(args), list[str]()
    for word in words:
        flag, equals, value = word.partition("=")
        option = declared.get(flag.removeprefix("--").replace("-", "_"))
        if not flag.startswith("--") or flag in own or option is None:
            result.append(word)
            continue
        if not equals:
            value = "true" if option.kind is bool else next(words, "")
        result += ["-o", f"{option.name}={value}"]
    return result


@click.group()
def faults() -> None:
    """Inject faults by hand (`urteil list faults` names them)."""


@faults.command(short_help="Check that faults act and heal, on an idle cluster.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--cluster", metavar="NAME", help="A standing cluster.  [default: a new one]")
@click.option(
    "--target", default=None, help="Target: urteil, kafka[:VERSION] or mix.  [default: urteil]"
)
@click.option(
    "--runtime",
    type=click.Choice(["process", "docker"]),
    help="Where the nodes run.  [default: process]",
)
@click.option("--seed", type=SEED, default=1, show_default=True,
              help="Seed of the faults' choices.")  # fmt: skip
@json_option("Print only a JSON array.")
def check(
    names: tuple[str, ...], cluster: str | None, target: str | None, runtime: str | None,
    seed: int, as_json: bool,
) -> int:  # fmt: skip
    """Inject and heal each named fault on an idle cluster, and print the proofs of both.

    Without NAME, all faults are checked. Exit code 1 when a fault has no proof that it acted and
    healed.
    """
    from urteil.chaos.faults import FAULTS

    chosen = [require_known("fault", name, FAULTS) for name in names] or list(FAULTS)
    if cluster is not None and (target or runtime):
        raise click.UsageError("a standing cluster has its target and runtime: leave them out")
    checks = []
    for fault_check in _check_faults(
        chosen, cluster, target or "urteil", runtime or "process", seed
    ):
        checks.append(fault_check)
        if not as_json:
            click.echo(_sentence(fault_check))
    if as_json:
        click.echo(json.dumps([_row(fault_check) for fault_check in checks], indent=2))
    return 0 if all(fault_check.good for fault_check in checks) else EXIT_NOT_SHOWN


@faults.command(cls=FaultCommand, short_help="Hold a fault on a standing cluster.")
@click.argument("name")
@click.argument("target", required=False)
@click.option("--cluster", metavar="NAME", default="default", show_default=True,
              help="The standing cluster.")  # fmt: skip
@click.option("--for", "for_s", type=Number(0.1, 86_400), default=30, show_default=True,
              help="Seconds until it heals, also when this command is killed.")  # fmt: skip
@click.option(
    "--topic",
    default="",
    help="Topic of roles such as leader.  [default: the first by name]",
)
@click.option("--partition", type=click.IntRange(0), default=0, show_default=True,
              help="Partition whose leader or followers are the target.")  # fmt: skip
@click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of the fault (`urteil list faults` shows them).")  # fmt: skip
def hold(name: str, target: str | None, cluster: str, for_s: float, **arguments: Any) -> int:
    """Hold the fault NAME on TARGET of a standing cluster until Ctrl-C, or for some seconds.

    Each option of the fault may be written as an option of this command, `--api Produce` for
    `-o api=Produce`. A fault of single requests and answers waits for what it acts on. Exit code 1
    when the fault has no proof that it acted.
    """
    from urteil.chaos.fault_arguments import FaultArguments
    from urteil.chaos.faults import FAULTS
    from urteil.harness import standing
    from urteil.harness.fault_server import FaultRejected

    interrupt = WakeupPipe()
    interrupt.wake_on(signal.SIGINT)
    kind = FAULTS[require_known("fault", name, FAULTS)]
    options = dict(_option(text) for text in arguments.pop("options"))
    try:
        kind(FaultArguments(target=target or kind.sample, options=options, **arguments))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        session = standing.faults_on(cluster)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    holding = session.fault(
        name, target or kind.sample, expiry_s=for_s + 1, options=options, **arguments
    )  # fmt: skip
    try:
        return _hold(name, holding, for_s, interrupt)
    except FaultRejected as error:
        raise click.UsageError(str(error)) from None


def _hold(
    name: str, holding: AbstractContextManager[HeldFault], for_s: float, interrupt: WakeupPipe
) -> int:
    with holding as held:
        where = f"{name} {', '.join(held.targets)}"
        end = time.monotonic() + for_s
        if held.acts_later:
            click.echo(f"{where} waits: {held.proof.text}")
            _await_act(held, where, end, interrupt)
        else:
            acts = "acts" if held.proof.acted else "DID NOT ACT"
            click.echo(f"{where} {acts}: {held.proof.text}")
        if held.proof.acted:
            interrupt.wait(max(0.0, end - time.monotonic()))
    if held.acts_later or held.final.acted != held.proof.acted:
        acted = "acted" if held.final.acted else "DID NOT ACT"
        click.echo(f"{name} {acted}: {held.final.text}")
    click.echo(f"{name} is healed")
    return 0 if held.final.acted else EXIT_NOT_SHOWN


def _await_act(held: HeldFault, where: str, end: float, interrupt: WakeupPipe) -> None:
    """Print the first proof of a fault that acts later."""
    while time.monotonic() < end and not interrupt.is_woken:
        if (proof := held.observe()).acted:
            click.echo(f"{where} acts: {proof.text}")
            return
        interrupt.wait(OBSERVE_S)


def _check_faults(
    names: list[str], cluster: str | None, target: str, runtime: str, seed: int
) -> Iterator[FaultCheck]:
    if cluster is None:
        yield from _check_in_own_cluster(names, target, runtime, seed)
        return
    from urteil.harness import standing

    try:
        cluster_state = standing.status(cluster)
        session = standing.faults_on(cluster)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    yield from session.check(
        names, runtime=cluster_state.runtime, target=cluster_state.target, seed=seed
    )


def _check_in_own_cluster(
    names: list[str], target: str, runtime: str, seed: int
) -> Iterator[FaultCheck]:
    from urteil.harness.cluster import Cluster
    from urteil.harness.fault_check import BROKERS, RECOVERY_S, ZOOKEEPERS, check_all, prepare
    from urteil.harness.scenario import ClusterSpec
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.mix import size_of

    spec = ClusterSpec(brokers=size_of(target, BROKERS), zookeepers=ZOOKEEPERS)
    with tempfile.TemporaryDirectory(prefix="urteil-faults-") as folder:
        try:
            cluster = Cluster(spec, parse_target(target), Path(folder), runtime=runtime)
        except ValueError as error:
            raise click.UsageError(f"--target {target}: {error}") from None
        with cluster:
            controls = cluster.controls()
            prepare(cluster.bootstrap, controls.topics())
            controls.await_healthy(deadline_s=RECOVERY_S)
            for name in names:
                yield from check_all(controls, [name], runtime=runtime, target=target, seed=seed)


def _sentence(fault_check: FaultCheck) -> str:
    if fault_check.why:
        return f"{fault_check.fault:<24}  not here: {fault_check.why}"
    acts = "acted" if fault_check.acted else "DID NOT ACT"
    heals = "healed" if fault_check.healed else "DID NOT HEAL"
    return (
        f"{fault_check.fault:<24}  {acts} and {heals} in {fault_check.seconds:.1f} s "
        f"({fault_check.target})\n"
        f"{'':<26}proof: {fault_check.proof}\n{'':<26}healing: {fault_check.healing}"
    )


def _row(fault_check: FaultCheck) -> dict[str, Any]:
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(fault_check)
    return row


def _option(text: str) -> tuple[str, Option]:
    """NAME=VALUE as a pair; a numeric VALUE becomes a float."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"-o {text}: write NAME=VALUE")
    try:
        return name, float(value)
    except ValueError:
        return name, value
