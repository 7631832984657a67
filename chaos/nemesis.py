"""The nemesis plays a schedule against a cluster, records its acts, and heals everything."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from urteil.chaos.anchor_events import LINK_EVENT, EventWatch
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults import FAULTS, Fault, Proof
from urteil.chaos.link_rules import LINK_EVENTS
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import LabFailure, Link, NodeState, NotHealthy
from urteil.chaos.schedule import PlannedFault
from urteil.chaos.topology import EAST
from urteil.chaos.waiting import until

TICK_S = 0.05
CHECK_EVERY_S = 2.0
PATIENCE_S = 60.0
RETRY_S = 0.25
EXIT_S = 1.0
"""Time in which a process that exits, and lets no tracer attach any more, has ended."""


@dataclass(slots=True, kw_only=True)
class Injection:
    """One row of the table `faults` while its fault is active. Times are CLOCK_MONOTONIC in ns."""

    fault: str
    targets: tuple[str, ...] = ()
    begin_ns: int
    end_ns: int | None = None
    healed_ns: int | None = None
    proof: str = ""
    acted: bool = False
    planned: PlannedFault | None = None
    harm: str | None = None
    effects: frozenset[Effect] = frozenset()

    def row(self) -> dict[str, object]:
        """The row of faults.jsonl. Lists are JSON texts, as in the evidence."""
        return {
            "fault": self.fault,
            "targets": json.dumps(list(self.targets)),
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "healed_ns": self.healed_ns,
            "proof": self.proof,
            "acted": self.acted,
            "harm": self.harm,
            "effects": json.dumps(sorted(self.effects)),
        }


@dataclass(slots=True)
class _Active:
    fault: Fault
    injection: Injection
    controls: Controls
    heal_at: float
    hold: int
    alone: bool
    proof: Proof


@dataclass(slots=True)
class _Waiting:
    """A fault before its begin. `due_at` is None until its anchor has occurred; `watch` waits for
    its event since `watched_at`."""

    planned: PlannedFault
    due_at: float | None = None
    watch: EventWatch | None = None
    watched_at: float = 0.0


@dataclass
class Nemesis:
    """Plays one schedule, in the thread that calls it. `second` has the controls of the second
    cluster of a run, for faults that select there.

    `acked` returns the number of records acknowledged so far. `record` is the file faults.jsonl; it
    is replaced at every change, so that it is readable at any moment. `problems` are failures of
    the lab: any entry makes the run UNKNOWN. A fault that could not act is no such problem; its row
    has `acted` false. A due fault waits while `at_once` faults are active, while it must
    act alone, and while no node has its role because of other faults. When `heal_requested` returns
    True, the nemesis heals everything and begins no further fault; it calls `on_manual_heal` with
    the reason of a failed healing, or an empty text.
    """

    controls: Controls
    schedule: Sequence[PlannedFault]
    record: Path
    acked: Callable[[], int]
    log: Callable[[str], None] = lambda _line: None
    at_once: int | None = None
    heal_requested: Callable[[], bool] = lambda: False
    on_manual_heal: Callable[[str], None] = lambda _failure: None
    second: Controls | None = None
    injections: list[Injection] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    healed: bool = False
    _active: list[_Active] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def _clusters(self) -> list[Controls]:
        return [controls for controls in (self.controls, self.second) if controls is not None]

    def _cluster_of(self, planned: PlannedFault) -> Controls:
        """The controls of the cluster in which a fault selects."""
        if planned.arguments.cluster == EAST:
            return self.controls
        if self.second is None:
            raise ValueError(f"{planned.arguments.selector}: the run has one cluster")
        return self.second

    def stop(self) -> None:
        """End `play` early, from any thread. `heal` still heals the active faults."""
        self._stop.set()

    def play(self, *, duration_s: float, quiet_s: float = 0.0) -> None:
        """Play the schedule for at least `duration_s`, and `quiet_s` after the last healing.

        Returns when both have passed and every fault has begun and was healed. A fault whose anchor
        (acknowledgements, an event) does not occur within PATIENCE_S more does not act. The time in
        which other faults kept it from watching for its event does not count.
        """
        began = time.monotonic()
        waiting = [_Waiting(planned) for planned in self.schedule]
        try:
            self._play(waiting, began, duration_s, quiet_s)
        finally:
            for fault in waiting:
                if fault.watch is not None:
                    fault.watch.close()

    def _play(
        self, waiting: list[_Waiting], began: float, duration_s: float, quiet_s: float
    ) -> None:
        checked = last = began
        while not self._stop.is_set():
            now = time.monotonic()
            if self.heal_requested():
                self._heal_manually(waiting)
                last = time.monotonic()
                continue
            self._resolve_anchors(waiting, began, now, began + duration_s)
            if self._step(waiting, now):
                last = time.monotonic()
                continue
            if now - checked > CHECK_EVERY_S:
                self._check()
                checked = now
            if not waiting and not self._active and now >= max(began + duration_s, last + quiet_s):
                return
            self._stop.wait(TICK_S)

    def heal(self, *, deadline_s: float) -> float | None:
        """Heal all active faults, every link and every node; wait until the cluster is healthy.

        Returns the recovery time in seconds; None if the cluster did not recover or healing failed,
        with the reason in `problems`. Repeatable; raises no exception.
        """
        self._end_all()
        try:
            self._restore_nodes()
            for controls in self._clusters:
                controls.check()
            self.healed = True
            return max(cluster.await_healthy(deadline_s=deadline_s) for cluster in self._clusters)
        except (LabFailure, NotHealthy) as failure:
            self._problem(f"after healing: {failure}")
        except Exception as failure:
            self._problem(f"healing failed: {type(failure).__name__}: {failure}")
        return None

    def _end_all(self) -> None:
        """Heal active faults; those that start nodes last, because nodes need their links."""
        for fault in sorted(
            reversed(self._active), key=lambda fault: bool(self._dead_nodes(fault))
        ):
            self._end(fault)

    def _dead_nodes(self, fault: _Active) -> list[str]:
        """The dead nodes that the fault ended, which its healing starts."""
        nodes = {*fault.controls.nodes} & {*fault.injection.targets}
        return _nodes_in(fault.controls, nodes, NodeState.DEAD)

    def _is_blocked(self, fault: _Active) -> bool:
        """Whether its healing would start a broker that other faults keep from registering: it
        reaches no ZooKeeper server, or no majority of KRaft's quorum. The start would fail or block
        the healing of those faults."""
        controls = fault.controls
        starting = self._dead_nodes(fault)
        brokers = [node for node in starting if node in controls.brokers]
        servers = controls.zookeepers or controls.voters
        if not brokers or not servers:
            return False
        needed = 1 if controls.zookeepers else len(servers) // 2 + 1
        disturbed = controls.net.disturbed_links()
        cut = {link for link, done in disturbed.items() if any(map(_cuts, done))}
        away = _nodes_in(controls, servers, NodeState.DEAD, NodeState.PAUSED)
        serving = [node for node in servers if node not in away or node in starting]

        def reachable_nodes(broker: str) -> list[str]:
            return [node for node in serving if Link(broker, node) not in cut]

        return any(len(reachable_nodes(broker)) < needed for broker in brokers)

    def _restore_nodes(self) -> None:
        """Resume, reconnect and start all nodes that a fault affected; links first."""
        for controls in self._clusters:
            nodes = controls.nodes
            for node in nodes:
                if controls.status(node).state is NodeState.PAUSED:
                    controls.resume(node)
            controls.net.heal_all()
            states = {node: controls.status(node).state for node in nodes}
            dead = [n for n in nodes if states[n] is NodeState.DEAD and self._was_target(n)]
            for node in dead:
                controls.start(node)
            if dead:
                controls.net.heal_all()  # links to dead nodes could not be probed before

    def _was_target(self, node: str) -> bool:
        """Whether a fault had the node as its target. A node that exited by itself stays dead."""
        return any(node in injection.targets for injection in self.injections)

    def _heal_manually(self, waiting: list[_Waiting]) -> None:
        self._end_all()
        for late in waiting:
            self._record_unstarted(late.planned, "all faults were healed on request")
            if late.watch is not None:
                late.watch.close()
        waiting.clear()
        failure_text = ""
        try:
            self._restore_nodes()
        except Exception as failure:
            failure_text = f"{type(failure).__name__}: {failure}"
            self._problem(f"healing on request failed: {failure_text}")
        self.log("all faults were healed on request")
        self.on_manual_heal(failure_text)

    def _resolve_anchors(
        self, waiting: list[_Waiting], began: float, now: float, over_at: float
    ) -> None:
        """Set `due_at` of the faults whose anchor has occurred. Remove those whose anchor has not
        PATIENCE_S after `over_at`, or after they began to watch for it if that was later."""
        unknown = [fault for fault in waiting if fault.due_at is None]
        acked = (
            self.acked() if any(fault.planned.after_acks is not None for fault in unknown) else 0
        )
        for fault in unknown:
            planned = fault.planned
            if planned.after_event is not None:
                self._await_event(fault, waiting, began + planned.at_s, now)
            elif planned.after_acks is None:
                fault.due_at = began + planned.at_s
            elif acked >= planned.after_acks:
                fault.due_at = now + planned.at_s
            waits = fault.due_at is None and not self._is_kept_from_watching(fault, waiting)
            if waits and now > max(over_at, fault.watched_at) + PATIENCE_S:
                waiting.remove(fault)
                self._record_unstarted(planned, _describe_missing_anchor(planned, acked))

    def _await_event(
        self, fault: _Waiting, waiting: list[_Waiting], from_at: float, now: float
    ) -> None:
        """Start to watch for the event at the fault's moment. The fault is due after the event or
        `within_s`."""
        planned = fault.planned
        if fault.watch is None:
            if now < from_at or not self._may_watch(planned, waiting):
                return
            controls = self._cluster_of(planned)
            fault.watch = EventWatch(planned.after_event or "", controls, planned.arguments)
            fault.watched_at = now
        late = planned.within_s is not None and now >= fault.watched_at + planned.within_s
        if fault.watch.occurred.is_set() or late:
            fault.due_at = now
            outcome = "occurred"
            if not fault.watch.occurred.is_set():
                outcome = f"did not occur within {planned.within_s} s"
            self.log(
                f"{planned.after_event} {outcome}: {planned.fault} "
                f"{planned.arguments.selector} is due"
            )

    def _step(self, waiting: list[_Waiting], now: float) -> bool:
        """Begin or heal the fault that has been due longest. False if none is due."""
        beginnable = [fault for fault in waiting if self._may_begin(fault.planned)]
        begin = min(
            beginnable, key=lambda w: math.inf if w.due_at is None else w.due_at, default=None
        )
        over = [fault for fault in self._active if fault.heal_at <= now]
        healable = [fault for fault in over if not self._is_blocked(fault)]
        if not healable and len(over) == len(self._active):
            healable = over  # no other fault will be healed first
        heal = min(healable, key=lambda a: a.heal_at, default=None)
        begin_at = math.inf
        if begin is not None and begin.due_at is not None:
            begin_at = begin.due_at
        if heal is not None and heal.heal_at <= begin_at:
            self._end(heal)
        elif begin is not None and begin_at <= now:
            waiting.remove(begin)
            if not self._begin(begin.planned, begin.watch):
                begin.due_at = time.monotonic() + RETRY_S
                waiting.append(begin)
            elif begin.watch is not None:
                begin.watch.close()
        else:
            return False
        return True

    def _may_begin(self, planned: PlannedFault) -> bool:
        if (planned.alone and self._active) or any(fault.alone for fault in self._active):
            return False
        return self.at_once is None or len(self._active) < self.at_once

    def _is_kept_from_watching(self, fault: _Waiting, waiting: list[_Waiting]) -> bool:
        return fault.watch is None and not self._may_watch(fault.planned, waiting)

    def _may_watch(self, planned: PlannedFault, waiting: list[_Waiting]) -> bool:
        """Whether a fault may start to watch for its event. A request or answer waits in its proxy
        until the fault begins. So a fault that may not begin yet watches for none, and faults that
        watch count as active ones."""
        if not _is_at_link(planned):
            return True
        watching = sum(_is_at_link(other.planned) and other.watch is not None for other in waiting)
        room = self.at_once is None or len(self._active) + watching < self.at_once
        return room and self._may_begin(planned)

    def _begin(self, planned: PlannedFault, watch: EventWatch | None = None) -> bool:
        """Begin a fault. False if no node has the role while other faults are active, or if one of
        them ended the selected node meanwhile: a node may have the role after they are healed."""
        others = bool(self._active)
        arguments = replace(planned.arguments, event_link=watch.link if watch else "")
        if others:
            arguments = replace(arguments, election_deadline_s=0.0)
        fault, controls = FAULTS[planned.fault](arguments), self._cluster_of(planned)
        injection = Injection(fault=planned.fault, begin_ns=time.monotonic_ns(), planned=planned)
        self.injections.append(injection)
        hold = 0
        try:
            hold = controls.hold(fault.name, expiry_s=planned.duration_s + fault.expiry_s)
            proof = fault.begin(controls)
        except NoTarget as reason:
            if others:
                self._withdraw(injection, controls, hold)
                return False
            proof = Proof(acted=False, text=f"no target: {reason}")
        except Exception as failure:
            proof = Proof(acted=False, text=f"{type(failure).__name__}: {failure}")
            if others and _has_lost_its_target(fault, controls):
                self._undo(fault, controls)
                self._withdraw(injection, controls, hold)
                return False
            self._problem(f"{planned.fault} {planned.arguments.selector}: {proof.text}")
        injection.targets = fault.targets or (planned.arguments.selector,)
        injection.proof, injection.acted = proof.text, proof.acted
        injection.harm = proof.harm
        injection.effects = fault.injected_effects()
        heal_at = time.monotonic() + planned.duration_s
        self._active.append(
            _Active(fault, injection, controls, heal_at, hold, planned.alone, proof)
        )
        self._write()
        verdict = "acts" if proof.acted else "DID NOT ACT"
        self.log(f"{planned.fault} {', '.join(injection.targets)} {verdict}: {proof.text}")
        return True

    def _withdraw(self, injection: Injection, controls: Controls, hold: int) -> None:
        """Record that the fault has not begun: it will select its target again."""
        self.injections.remove(injection)
        controls.release(hold)

    def _undo(self, fault: Fault, controls: Controls) -> None:
        try:
            fault.heal(controls)
        except Exception as failure:
            self._problem(f"healing {fault.name}: {type(failure).__name__}: {failure}")

    def _end(self, active: _Active) -> None:
        injection = active.injection
        self._active.remove(active)
        injection.end_ns = time.monotonic_ns()
        try:
            healed = active.fault.heal(active.controls)
            injection.healed_ns = time.monotonic_ns()
            proof = active.fault.final_proof(active.proof)
            injection.proof, injection.acted = f"{proof.text}; healed: {healed}", proof.acted
            append_link_events(self.record.parent, active.fault)
            active.controls.release(active.hold)
        except Exception as failure:
            self._problem(f"healing {injection.fault}: {type(failure).__name__}: {failure}")
        self._write()
        self.log(f"{injection.fault} {', '.join(injection.targets)} healed")

    def _record_unstarted(self, planned: PlannedFault, why: str) -> None:
        now_ns = time.monotonic_ns()
        self.injections.append(
            Injection(
                fault=planned.fault,
                targets=(planned.arguments.selector,),
                begin_ns=now_ns,
                end_ns=now_ns,
                healed_ns=now_ns,
                proof=f"never began: {why}",
                planned=planned,
                effects=FAULTS[planned.fault](planned.arguments).injected_effects(),
            )
        )
        self._write()

    def _check(self) -> None:
        try:
            for controls in self._clusters:
                controls.check()
        except LabFailure as failure:
            self._problem(str(failure))

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)
            self.log(f"problem: {text}")

    def _write(self) -> None:
        part = self.record.with_name(self.record.name + ".part")
        part.write_text("".join(json.dumps(i.row()) + "\n" for i in self.injections))
        part.replace(self.record)


def append_link_events(run_dir: Path, fault: Fault) -> None:
    """Append the requests and answers on which the fault acted to the run's file."""
    if rows := [hit.row(fault.name) for hit in fault.link_events()]:
        with (run_dir / LINK_EVENTS).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def _nodes_in(controls: Controls, nodes: Collection[str], *states: NodeState) -> list[str]:
    """The nodes in one of the states; none if the lab cannot read the states."""
    try:
        return [node for node in nodes if controls.status(node).state in states]
    except LabFailure:
        return []


def _has_lost_its_target(fault: Fault, controls: Controls) -> bool:
    """Whether the one node on which the fault was to act has ended, or does within EXIT_S."""
    if len(fault.targets) != 1 or fault.targets[0] not in controls.nodes:
        return False
    dead = until(lambda: _nodes_in(controls, fault.targets, NodeState.DEAD), deadline_s=EXIT_S)
    return bool(dead)


def _cuts(done: str) -> bool:
    """Whether this fault on a link (`LinkControls.active`) stops all data."""
    return done.startswith(("cut_", "closed"))


def _is_at_link(planned: PlannedFault) -> bool:
    return (planned.after_event or "").startswith(LINK_EVENT)


def _describe_missing_anchor(planned: PlannedFault, acked: int) -> str:
    if planned.after_event is not None:
        return f"no {planned.after_event} occurred"
    return f"there were only {acked} acknowledgements"
