"""The base class of all faults, and helpers that several faults share."""

from __future__ import annotations

import itertools
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from urteil.chaos.capabilities import Capability
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import COORDINATOR_OPTIONS, FaultOption, Option
from urteil.chaos.link_rules import RuleHit
from urteil.chaos.observations import Link, NodeState, NodeStatus, Probe
from urteil.chaos.parallel import run_on_all
from urteil.chaos.similar_names import suggest

LINKS_AT_ONCE = 16

EXPIRY_S = 60.0
HEALED_S = 3.0
PROCESS, DOCKER, SSH = "process", "docker", "ssh"
ON_THIS_MACHINE = (PROCESS, DOCKER)
"""Runtimes on which the lab itself reaches the files and the processes of nodes."""
URTEIL, KAFKA, KRAFT, MIX, EXTERNAL = "urteil", "kafka", "kafka-kraft", "mix", "external"
WITH_ZOOKEEPER = (URTEIL, KAFKA, MIX)
"""Clusters that the lab starts, with a metadata plane of ZooKeeper."""
STARTED_BY_LAB = (*WITH_ZOOKEEPER, KRAFT)
FIRST_WITHOUT_ZOOKEEPER = 4
"""The major version of Apache Kafka that has no ZooKeeper mode."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether a fault acted, and the observation that shows it.

    `harm` is the column of that name (docs/reference/evidence.md): the records that the fault
    destroyed.
    """

    acted: bool
    text: str
    harm: str | None = None


def target_kind(target: str) -> str:
    """The kind of a value of `--target`: `kafka:4.4.0` is one without ZooKeeper."""
    kind, _, version = target.partition(":")
    major = version.partition(".")[0]
    is_kraft = kind == KAFKA and major.isdigit() and int(major) >= FIRST_WITHOUT_ZOOKEEPER
    return KRAFT if is_kraft else kind


class Fault:
    """One injection of a fault.

    `begin` is called once, then `heal`; `heal` may also follow a `begin` that failed.

    A fault is a module with one subclass that has a `name`, in the folder of `chaos/faults/` that
    is its `family`; its definition registers it. Its class attributes are:

    - `name`, `about`: what `urteil list faults` prints.
    - `listed_after`: the fault behind which it is listed; by default the order is alphabetical. The
      schedules that a seed draws depend on this order.
    - `selectors`: the permitted targets, in the same words as other faults use, because the check
      of a schedule reads them.
    - options: an attribute for each, declared by `fault_options`: `self.delay_ms` is the value with
      which this injection was made. `options` has the declarations by name, also those of base
      classes. COORDINATOR_OPTIONS are options of every fault; any other one is a ValueError.
    - `effects`: what the fault does, for judging. `injected_effects` differs where options decide,
      or where `begin` saw another effect.
    - `proves`: the observation that shows that the fault acted. `begin` measures it before and
      after. A fault without effect returns `Proof(acted=False)`. The text of the proof holds the
      measured values.
    - `on_runtimes`, `on_targets`: where the fault can act.
    - `needs`: what brokers must be able to do; a cluster without it refuses the scenario.
    - `sample`, `sample_options`: the target and the options with which `urteil faults check` plays
      the fault on an idle cluster of three brokers and a topic with three replicas; `sample_s`: how
      long. A fault that needs more than an idle cluster (running clients) has an empty sample.
    - `acts_later`: it acts on what happens while it is active, so `begin` proves nothing yet:
      `current_proof` and `final_proof` do.
    - `changes_voters`: it needs a dynamic quorum.
    - `expiry_s`: how long after its planned end, or after the death of the lab, the fault is undone
      at the latest. The caller calls `Controls.hold` before `begin` and `Controls.release` after
      `heal`. A process beside the cluster heals a fault that was held too long. On a cluster that
      belongs to one run, the reaper ends everything. A fault that acts from its own thread (flaps,
      loops) ends the thread in `heal`; the thread is a daemon.

    After `begin`, `targets` holds the names of the selected nodes or links. `owner` identifies this
    injection on links (`LinkControls`), so that healing one fault keeps another fault on the same
    link. A fault that may end a node (a full disk, no file descriptors) calls
    `Controls.allow_exit` first; otherwise the exit counts as a failure of the lab. `heal` starts a
    node that ended.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    family: ClassVar[str]
    effects: ClassVar[frozenset[Effect]]
    listed_after: ClassVar[str] = ""
    proves: ClassVar[str]
    selectors: ClassVar[str] = "a role or a node"
    options: ClassVar[dict[str, FaultOption]] = {}
    acts_later: ClassVar[bool] = False
    changes_voters: ClassVar[bool] = False
    expiry_s: ClassVar[float] = EXPIRY_S
    on_runtimes: ClassVar[tuple[str, ...]] = (PROCESS, DOCKER, SSH)
    on_targets: ClassVar[tuple[str, ...]] = (*STARTED_BY_LAB, EXTERNAL)
    needs: ClassVar[tuple[Capability, ...]] = ()
    sample: ClassVar[str] = "leader"
    sample_options: ClassVar[Mapping[str, Option]] = {}
    sample_s: ClassVar[float] = 0.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = [
            replace(option, name=option.name or attribute, attribute=attribute)
            for attribute, option in cls.__dict__.items()
            if isinstance(option, FaultOption)
        ]
        own = {option.name: option for option in declared}
        cls.options = own | {
            name: option for name, option in cls.options.items() if name not in own
        }
        if "name" not in cls.__dict__:
            return
        if cls.name in REGISTERED:
            raise ValueError(f"two faults are named {cls.name}")
        cls.family = cls.__module__.split(".")[-2]
        REGISTERED[cls.name] = cls

    @classmethod
    def list_position(cls) -> tuple[str, bool, str]:
        """The sort key of the list of faults."""
        return (cls.listed_after or cls.name, bool(cls.listed_after), cls.name)

    def __init__(self, arguments: FaultArguments) -> None:
        values = self.read_options(arguments.options)
        for option in self.options.values():
            setattr(self, option.attribute, values.get(option.name, option.default))
        self.arguments = arguments
        self.owner = f"{self.name}_{next(_numbers)}"
        self.targets: tuple[str, ...] = ()

    @classmethod
    def read_options(cls, values: Mapping[str, Option]) -> dict[str, Option]:
        """The typed values of options. ValueError for an option that the fault does not have, and
        for a value that its declaration does not permit."""
        known = {**cls.options, **COORDINATOR_OPTIONS}
        if unknown := sorted(set(values) - set(known)):
            hint = suggest(unknown[0], known)
            raise ValueError(f"{cls.name} takes no option {', '.join(unknown)}; {hint}")
        return {name: known[name].read(value) for name, value in values.items()}

    @classmethod
    def required_capabilities(cls, options: Mapping[str, Option]) -> tuple[Capability, ...]:
        """Capabilities that the fault needs with these options: `needs`, by default."""
        return cls.needs

    def begin(self, controls: Controls) -> Proof:
        """Begin the fault, and prove it. LabFailure if the lab cannot act."""
        raise NotImplementedError

    def injected_effects(self) -> frozenset[Effect]:
        """The effects of this injection. Called after `begin`."""
        return self.effects

    def voided_promises(self) -> frozenset[str]:
        """The promises of safe settings that the fault voids with these arguments.

        A schedule contains the fault only if the scenario permits these promises to be void.
        `durability`: acknowledged records may be lost (power cut of all replicas, loss of all
        disks). `clean_election`: a leader may lack records. `retention`: records are deleted before
        the time that their topic promises.
        """
        return frozenset()

    def heal(self, controls: Controls) -> str:
        """Undo the fault. Returns the observation that shows it. Repeatable."""
        raise NotImplementedError

    def current_proof(self, controls: Controls, proof: Proof) -> Proof:
        """The proof so far of an active fault, from that of `begin`."""
        return proof

    def final_proof(self, proof: Proof) -> Proof:
        """The proof after healing, from that of `begin`. It differs if the fault acts on events
        while it is active. Called after `heal`."""
        return proof

    def link_events(self) -> Sequence[RuleHit]:
        """The requests and answers on which the fault acted. Called after `heal`."""
        return ()

    def find_residual_effects(self, controls: Controls) -> str:
        """The effects of the fault that are still visible after healing; empty if none is.

        Called on a healthy cluster that no other fault disturbs.
        """
        raise NotImplementedError

    @classmethod
    def acts_on_zookeeper(cls, selector: str, options: Mapping[str, Any]) -> bool:
        """Whether its nodes or links are ZooKeeper's."""
        return re.search(r"\bzookeeper|\bzk\d", selector) is not None

    @classmethod
    def acts_on_quorum(cls, selector: str) -> bool:
        """Whether its nodes or links are those of KRaft's quorum."""
        return re.search(r"\bquorum|\bq\d", selector) is not None

    @classmethod
    def unsupported_reason(
        cls,
        *,
        runtime: str,
        target: str,
        selector: str = "",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        """The reason for which the fault cannot act there; empty if it can. `target` is a value of
        `--target`, `selector` the nodes or links of the fault."""
        kind = target_kind(target)
        name = target if kind == KRAFT else kind
        if kind not in cls.on_targets:
            return f"the fault {cls.name} does not act on --target {name}"
        if kind == KRAFT and cls.acts_on_zookeeper(selector, options):
            return f"the fault {cls.name} acts on ZooKeeper there, and --target {name} has none"
        if kind != KRAFT and cls.acts_on_quorum(selector):
            return (
                f"the fault {cls.name} acts on KRaft's quorum there, and --target {name} has none: "
                "take --target kafka:4.4.0"
            )
        if kind != EXTERNAL and runtime not in cls.on_runtimes:
            return f"the fault {cls.name} acts only with --runtime {' or '.join(cls.on_runtimes)}"
        return ""


REGISTERED: dict[str, type[Fault]] = {}
"""Every defined fault by name, in the order of definition."""


def was_killed(status: NodeStatus) -> bool:
    """Whether SIGKILL ended the process, also after a controlled shutdown that took too long."""
    return status.exit_code in (-signal.SIGKILL, 128 + signal.SIGKILL)


def describe_stopped_nodes(controls: Controls, nodes: Sequence[str]) -> str:
    """The nodes that do not run, with their states; empty if all run."""
    states = [controls.status(node) for node in nodes]
    return ", ".join(
        f"{state.node} is {state.state.value}"
        for state in states
        if state.state is not NodeState.RUNNING
    )


def describe_broken_links(controls: Controls, links: Sequence[Link]) -> str:
    """The links that still have a toxic or carry no response; empty if there is none."""
    active = controls.net.disturbed_links()
    faulty = [f"{link} is {', '.join(active[link])}" for link in links if link in active]
    silent = [p for p in probe_all(controls, links, timeout_s=HEALED_S) if not p.answered]
    return "; ".join([*faulty, *(probe.detail or f"{probe.link} is silent" for probe in silent)])


def probe_all(controls: Controls, links: Sequence[Link], *, timeout_s: float) -> list[Probe]:
    """Probe all links in parallel."""
    return run_on_all(
        lambda link: controls.net.probe(link, timeout_s=timeout_s), links, at_once=LINKS_AT_ONCE
    )
