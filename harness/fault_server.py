"""Faults on a standing cluster: the cluster process plays them, and heals those that were left
behind.

`FaultServer` listens on loopback; the cluster's state file has its address and its key. A lab sends
requests over one connection, a `FaultSession`. A fault of a session is healed on request, when the
session ends in any way (SIGKILL of the lab included), and `expiry_s` after its begin at the latest,
in case the lab hangs.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import msgspec

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import Option
from urteil.chaos.faults import FAULTS, Fault, Proof
from urteil.chaos.faults.base.rule_fault import RuleFault
from urteil.chaos.link_rules import RuleHit
from urteil.chaos.observations import LabFailure, NodeState, NodeStatus, NotHealthy
from urteil.harness.fault_check import FaultCheck, check_all, prepare

HEAL_DEADLINE_S = 60.0
NO_PROOF = Proof(acted=False, text="")
Request = dict[str, Any]


@dataclass(slots=True)
class _ActiveFault:
    """A fault from its begin to its healing; `busy` while it begins or heals."""

    fault: Fault
    timer: threading.Timer
    busy: threading.Lock
    proof: Proof = NO_PROOF


class FaultServer:
    """Plays faults on `controls` for clients with the key."""

    def __init__(self, controls: Controls, bootstrap: list[str], key: bytes) -> None:
        self._controls = controls
        self._bootstrap = bootstrap
        self._listener = Listener(("127.0.0.1", 0), authkey=key)
        self._active: dict[int, _ActiveFault] = {}
        self._finals: dict[int, Request] = {}
        self._numbers = iter(range(1, 1 << 62))
        threading.Thread(target=self._accept, daemon=True, name="fault server").start()

    @property
    def port(self) -> int:
        address: tuple[str, int] = self._listener.address
        return address[1]

    def _accept(self) -> None:
        while True:
            try:
                session = self._listener.accept()
            except Exception:  # a client without the key, or one that closed the connection
                continue
            threading.Thread(target=self._serve, args=(session,), daemon=True).start()

    def _serve(self, session: Connection) -> None:
        numbers: list[int] = []
        try:
            while True:
                request = json.loads(session.recv_bytes())
                for response in self._respond(request, numbers):
                    session.send_bytes(json.dumps(response).encode())
        except (EOFError, OSError):
            return
        finally:
            for number in reversed(numbers):
                with contextlib.suppress(Exception):
                    self._heal(number)

    def _respond(self, request: Request, numbers: list[int]) -> Iterator[Request]:
        """One answer, or an error. A check has one answer a fault, then the end."""
        try:
            match request.pop("op"):
                case "begin":
                    yield self._begin(numbers, **request)
                case "observe":
                    yield self._observe(request["number"])
                case "hits":
                    yield self._new_hits(request["number"])
                case "heal":
                    yield self._heal_one(request["number"])
                case "heal all":
                    yield {"healed": self.heal_all()}
                case "pids":
                    yield self._pids()
                case "check":
                    yield from self._check(**request)
                    yield {"done": True}
        except Exception as failure:  # the client gets every failure as its answer
            yield {"error": str(failure), "kind": type(failure).__name__}

    def _begin(
        self, numbers: list[int], fault: str, aim: dict[str, Any], expiry_s: float
    ) -> Request:
        new_fault = FAULTS[fault](FaultArguments(**aim))
        number = next(self._numbers)
        timer = threading.Timer(expiry_s, self._expire, [number])
        timer.daemon = True
        active = _ActiveFault(new_fault, timer, threading.Lock())
        with active.busy:
            self._active[number] = active
            numbers.append(number)
            timer.start()
            proof = new_fault.begin(self._controls)
            active.proof = proof
        return {
            "number": number,
            "acted": proof.acted,
            "proof": proof.text,
            "targets": list(new_fault.targets),
            "acts_later": new_fault.acts_later,
        }

    def _observe(self, number: int) -> Request:
        """The proof so far. A fault that was healed meanwhile has the final one."""
        active = self._active.get(number)
        if active is None:
            return self._finals[number]
        with active.busy:
            proof = active.fault.current_proof(self._controls, active.proof)
        return {"acted": proof.acted, "proof": proof.text}

    def _new_hits(self, number: int) -> Request:
        """The frames on which an active fault of the protocol acted since the last request."""
        active = self._active.get(number)
        if active is None or not isinstance(active.fault, RuleFault):
            return {"hits": [], "forgotten": 0}
        with active.busy:
            hits, forgotten = active.fault.new_hits(self._controls)
        return {"hits": [asdict(hit) for hit in hits], "forgotten": forgotten}

    def _heal_one(self, number: int) -> Request:
        healed = self._heal(number)
        return {"healed": healed, **self._finals[number]}

    def _expire(self, number: int) -> None:
        try:
            print(f"fault {number} expired: {self._heal(number)}", flush=True)
        except Exception as failure:
            print(f"fault {number} expired and was not healed: {failure}", flush=True)

    def _heal(self, number: int) -> str:
        """Heal a fault once its begin is over.

        A fault that cannot be healed is kept, and tried again when it expires, with its session, or
        with all others.
        """
        active = self._active.get(number)
        if active is None:
            return "it was healed before"
        with active.busy:
            if number not in self._active:
                return "it was healed before"
            healed = active.fault.heal(self._controls)
            final = active.fault.final_proof(active.proof)
            self._finals[number] = {"acted": final.acted, "proof": final.text}
            active.timer.cancel()
            del self._active[number]
            return healed

    def heal_all(self) -> list[str]:
        """Heal the faults of all sessions, and every node or link that is still disturbed.

        Failed steps are repeated after all others. Raises NotHealthy after HEAL_DEADLINE_S.
        """
        steps = []
        for number, active in reversed(list(self._active.items())):
            with contextlib.suppress(Exception):
                steps.append(f"{active.fault.name}: {self._heal(number)}")
        steps += heal_now(self._controls)
        repeated = [
            f"{active.fault.name}: {self._heal(n)}" for n, active in list(self._active.items())
        ]
        return [*repeated, *steps]

    def _pids(self) -> Request:
        """The process id of every node, the last one of a dead node, or 0. The dead nodes, which
        those of a lost host are."""
        pids, dead = {}, []
        for node in self._controls.nodes:
            try:
                status = self._controls.status(node)
            except LabFailure:
                status = NodeStatus(node=node, state=NodeState.DEAD, pid=None)
            pids[node] = status.pid or 0
            if status.state is NodeState.DEAD:
                dead.append(node)
        return {"pids": pids, "dead": dead}

    def _check(self, names: list[str], runtime: str, target: str, seed: int) -> Iterator[Request]:
        prepare(self._bootstrap, self._controls.topics())
        self._controls.await_healthy(deadline_s=HEAL_DEADLINE_S)
        for name in names:
            for fault_check in check_all(
                self._controls, [name], runtime=runtime, target=target, seed=seed
            ):
                yield msgspec.to_builtins(fault_check)


class HeldFault:
    """An active fault of a session, and its final proof once it is healed.

    With `acts_later` the fault acts on what happens while it is held: `observe` returns the proof
    so far.
    """

    def __init__(self, session: FaultSession, began: Request) -> None:
        self._session = session
        self.number: int = began["number"]
        self.targets: list[str] = began["targets"]
        self.acts_later: bool = began["acts_later"]
        self.proof = Proof(acted=began["acted"], text=began["proof"])
        self.final = self.proof

    def observe(self) -> Proof:
        return _proof_of(self._session.exchange({"op": "observe", "number": self.number}))

    def new_hits(self) -> tuple[list[RuleHit], int]:
        """The frames on which a fault of the protocol acted since the last call, in order, and how
        many were forgotten meanwhile because there were too many."""
        response = self._session.exchange({"op": "hits", "number": self.number})
        return [RuleHit(**hit) for hit in response["hits"]], response["forgotten"]

    def heal(self) -> None:
        self.final = _proof_of(self._session.exchange({"op": "heal", "number": self.number}))


def _proof_of(response: Request) -> Proof:
    return Proof(acted=response["acted"], text=response["proof"])


class FaultRejected(LabFailure):
    """A fault with an unknown target or option."""


def heal_now(controls: Controls) -> list[str]:
    """Resume paused nodes, remove every fault from every link, start dead nodes, restore
    processors.

    Returns what was done once the cluster is healthy. Raises NotHealthy after HEAL_DEADLINE_S.
    """
    steps = []
    nodes = controls.nodes
    for node in nodes:
        if controls.status(node).state is NodeState.PAUSED:
            controls.resume(node)
            steps.append(f"{node} was paused and runs")
    active = controls.net.disturbed_links()
    controls.net.heal_all()
    steps += [f"{link} was {', '.join(toxics)}" for link, toxics in active.items()]
    dead = [node for node in nodes if controls.status(node).state is NodeState.DEAD]
    failures: list[Exception] = []
    for node in dead:
        try:
            steps.append(f"{node} was dead and runs as pid {controls.start(node).pid}")
        except (LabFailure, NotHealthy) as failure:
            failures.append(failure)
    if failures:
        raise NotHealthy("; ".join(map(str, failures)))
    for node in nodes:
        if controls.cpu_throttling(node).cpus is not None:
            steps.append(f"{node} was starved: {controls.restore_cpu(node)}")
    if dead:
        controls.net.heal_all()  # links to them could not be probed before
    waited_s = controls.await_healthy(deadline_s=HEAL_DEADLINE_S)
    return [*steps, f"healthy after {waited_s:.1f} s"]


class FaultSession:
    """A lab's connection to the process of a standing cluster. Raises LabFailure without one."""

    def __init__(self, port: int, key: str) -> None:
        try:
            self._connection = Client(("127.0.0.1", port), authkey=bytes.fromhex(key))
        except (OSError, EOFError, AuthenticationError) as error:
            raise LabFailure(f"the cluster process rejects the connection: {error}") from error
        self._lock = threading.Lock()

    def close(self) -> None:
        """End the session, which heals its faults."""
        self._connection.close()

    def heal_all(self) -> list[str]:
        healed: list[str] = self.exchange({"op": "heal all"})["healed"]
        return healed

    def pids(self) -> tuple[dict[str, int], list[str]]:
        """The process ids of all nodes now, and the dead nodes."""
        response = self.exchange({"op": "pids"})
        return response["pids"], response["dead"]

    def check(
        self, names: list[str], *, runtime: str, target: str, seed: int
    ) -> Iterator[FaultCheck]:
        """As `fault_check.check_all`, on the standing cluster."""
        request = {
            "op": "check",
            "names": names,
            "runtime": runtime,
            "target": target,
            "seed": seed,
        }
        response = self.exchange(request)
        while not response.get("done"):
            yield msgspec.convert(response, FaultCheck)
            response = self._receive()

    @contextmanager
    def fault(
        self, name: str, target: str, *, expiry_s: float, topic: str = "", partition: int = 0,
        seed: str = "1", options: Mapping[str, Option] | None = None,
    ) -> Iterator[HeldFault]:  # fmt: skip
        """Play a fault for the length of a `with` block.

        Raises FaultRejected for an impossible fault, and LabFailure when the cluster process could
        not play
        it.
        """
        arguments = {
            "target": target, "topic": topic, "partition": partition, "seed": seed,
            "options": dict(options or {}),
        }  # fmt: skip
        request = {"op": "begin", "fault": name, "aim": arguments, "expiry_s": expiry_s}
        held = HeldFault(self, self.exchange(request))
        try:
            yield held
        finally:
            held.heal()

    def exchange(self, request: Request) -> Request:
        """Send one request. Returns its first answer."""
        with self._lock:
            self._connection.send_bytes(json.dumps(request).encode())
            return self._receive()

    def _receive(self) -> Request:
        try:
            response: Request = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise LabFailure(f"the cluster process closed the connection: {error}") from error
        if "error" in response:
            kind, text = response["kind"], response["error"]
            if kind in ("NoTarget", "ValueError", "UnreadableLink"):
                raise FaultRejected(text)
            raise LabFailure(text if kind == "LabFailure" else f"{kind}: {text}")
        return response
