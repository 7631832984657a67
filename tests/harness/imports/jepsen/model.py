"""Histories that a correct log would give to the clients of jepsen.tests.kafka, by a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from urteil.harness.imports.jepsen.edn import Keyword, to_edn

Steps = list[list[Any]]
KEYS = 3
PROCESSES = 5
SEND, POLL = Keyword("send"), Keyword("poll")
NEMESIS = ("kill", "start", "partition", "heal", "pause", "resume", "bump-clock")


@dataclass(slots=True)
class Model:
    """Logs of records `[value, state]`, whose state is open, ok or aborted; markers have no value.

    `transactional` clients write and poll in transactions and go back when one fails; those of a
    group (`subscribed`) may be moved by a rebalance in any operation.
    """

    seed: int
    transactional: bool
    subscribed: bool
    random: Random = field(init=False)
    ops: list[dict[str, Any]] = field(default_factory=list)
    logs: list[list[list[Any]]] = field(default_factory=lambda: [[] for _ in range(KEYS)])
    processes: list[int] = field(default_factory=lambda: list(range(PROCESSES)))
    positions: dict[int, dict[int, int]] = field(default_factory=dict)
    values: int = 0
    now_ns: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def play(self, steps: int = 250) -> Model:
        for _ in range(steps):
            self._act(self.random.randrange(PROCESSES))
        for _ in range(2):
            self._poll_all()
        return self

    def text(self) -> str:
        return "\n".join(map(to_edn, self.ops))

    def _emit(self, kind: str, process: Any, f: str, value: Any, **more: Any) -> None:
        self.now_ns += self.random.randint(1, 5) * 1000
        fields = {"index": len(self.ops), "type": Keyword(kind), "process": process,
                "f": Keyword(f), "time": self.now_ns, "value": value}  # fmt: skip
        self.ops.append({Keyword(name): field for name, field in (fields | more).items()})

    def _anew(self, which: int) -> None:
        """A process whose operation ended `:info` is never used again."""
        self.processes[which] = max(self.processes) + 1

    def _act(self, which: int) -> None:
        process, what = self.processes[which], self.random.random()
        if what < 0.05 or process not in self.positions:
            self._assign(process)
        elif what < 0.07:
            self._emit("invoke", process, "crash", None)
            self._emit("info", process, "crash", None)
            self._anew(which)
        elif what < 0.09:
            self._emit("info", Keyword("nemesis"), self.random.choice(NEMESIS), None)
        else:
            self._step(which, process)

    def _assign(self, process: int) -> None:
        keys = sorted(self.random.sample(range(KEYS), self.random.randint(1, KEYS)))
        f, before = "subscribe" if self.subscribed else "assign", self.positions.get(process, {})
        self._emit("invoke", process, f, keys)
        self._emit("ok", process, f, keys)
        kept = {} if self.subscribed else before
        self.positions[process] = {key: kept.get(key, self._anywhere(key)) for key in keys}

    def _anywhere(self, key: int) -> int:
        return self.random.randint(0, len(self.logs[key]))

    def _step(self, which: int, process: int) -> None:
        asked = [self._mop() for _ in range(self.random.randint(1, 4) if self.transactional else 1)]
        kinds = {step[0] for step in asked}
        f = "txn" if len(kinds) > 1 else str(*kinds)
        self._emit("invoke", process, f, asked)
        more = self._rebalance(process)
        before, sent = dict(self.positions[process]), list[tuple[int, int]]()
        done = [self._done(process, step, sent) for step in asked]
        kind = self.random.choices(("ok", "fail", "info"), (80, 10, 10))[0]
        if kind == "fail" and not self.transactional and not sent:
            kind = "ok"
        self._end(sent, committed=kind == "ok" or (kind == "info" and self.random.random() < 0.5))
        if kind == "fail":
            self.positions[process] = before
        fields = (
            done if kind == "ok" or (self.transactional and self.random.random() < 0.5) else asked
        )
        self._emit(kind, process, f, fields, **more)
        if kind == "info":
            self._anew(which)

    def _mop(self) -> list[Any]:
        if self.random.random() < 0.5:
            return [POLL]
        self.values += 1
        return [SEND, self.random.randrange(KEYS), self.values]

    def _rebalance(self, process: int) -> dict[str, Any]:
        if not self.subscribed or self.random.random() > 0.1:
            return {}
        keys = list(self.positions[process])
        self.positions[process] = {key: self._anywhere(key) for key in keys}
        return {"rebalance-log": [{Keyword("keys"): keys}]}

    def _done(self, process: int, step: list[Any], sent: list[tuple[int, int]]) -> list[Any]:
        if step[0] == POLL:
            return [POLL, self._polled(process)]
        _, key, value = step
        offset = len(self.logs[key])
        self.logs[key].append([value, "open"])
        sent.append((key, offset))
        return [SEND, key, [offset, value] if self.random.random() < 0.9 else value]

    def _end(self, sent: list[tuple[int, int]], *, committed: bool) -> None:
        """Without transactions what did not take effect was never there."""
        for key, offset in sent:
            self.logs[key][offset][1] = "ok" if committed else "aborted"
            if not committed and not self.transactional:
                self.logs[key].pop()
        for key in sorted({key for key, _ in sent}) if self.transactional else ():
            self.logs[key].append([None, "marker"])

    def _polled(self, process: int, most: int = 8) -> dict[int, Steps]:
        steps: dict[int, Steps] = {}
        for key, position in self.positions[process].items():
            ends = [at for at, (_, state) in enumerate(self.logs[key]) if state == "open"]
            upto = min([*ends, len(self.logs[key]), position + self.random.randint(0, most)])
            records = enumerate(self.logs[key][position:upto], position)
            pairs = [[at, value] for at, (value, state) in records if state == "ok"]
            self.positions[process][key] = max(position, upto)
            steps |= {key: pairs} if pairs else {}
        return steps

    def _poll_all(self) -> None:
        """As `final-polls` does: a new process polls all keys from the beginning to the end."""
        self._anew(0)
        process, keys, seek = self.processes[0], list(range(KEYS)), {"seek-to-beginning?": True}
        self._emit("invoke", process, "assign", keys, **seek)
        self._emit("ok", process, "assign", keys, **seek)
        self.positions[process] = dict.fromkeys(keys, 0)
        while any(self.positions[process][key] < len(self.logs[key]) for key in keys):
            self._emit("invoke", process, "poll", [[POLL]])
            self._emit("ok", process, "poll", [[POLL, self._polled(process)]])
