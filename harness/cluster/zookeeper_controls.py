"""Controls that act in ZooKeeper itself. Implements `chaos.controls.ZooKeeperAdmin`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from urteil.chaos.observations import ControllerTerm, LabFailure
from urteil.harness.cluster.administration import admin_znodes
from urteil.harness.cluster.session_expiry import SessionGone, end_session

ANSWER_S = 5.0
CONTROLLER = "/controller"


class ZooKeeperControls:
    """Acts through a session of the lab's own, past all proxies. `servers` know the
    other sessions."""

    def __init__(
        self, client: Callable[[], KazooClient], servers: Callable[[], Sequence[tuple[str, int]]]
    ) -> None:
        self._client = client
        self._servers = servers

    def session(self, broker: str) -> int | None:
        with _zookeeper_errors():
            request = self._client().exists_async(f"/brokers/ids/{broker[1:]}")
            stat = request.get(timeout=ANSWER_S)
        return int(stat.ephemeralOwner) if stat else None

    def end_session(self, session: int) -> None:
        failures = []
        for server in self._servers():
            try:
                return end_session(server, session, timeout_s=ANSWER_S)
            except SessionGone:
                return
            except OSError as error:
                failures.append(f"{server[0]}: {error}")
        raise LabFailure(f"no ZooKeeper ended a session: {'; '.join(failures)}")

    def controller_term(self) -> ControllerTerm | None:
        with _zookeeper_errors():
            try:
                data, stat = self._client().get_async(CONTROLLER).get(timeout=ANSWER_S)
            except NoNodeError:
                return None
        return ControllerTerm(broker=f"b{json.loads(data)['brokerid']}", zxid=int(stat.czxid))

    def delete_controller(self) -> None:
        with _zookeeper_errors(), contextlib.suppress(NoNodeError):
            self._client().delete_async(CONTROLLER).get(timeout=ANSWER_S)

    def request_reassignment(self, order: Mapping[tuple[str, int], Sequence[int]]) -> bool:
        return admin_znodes.request_reassignment(self._client(), order)

    def request_election(self, slots: Iterable[tuple[str, int]]) -> bool:
        return admin_znodes.request_election(self._client(), slots)


@contextlib.contextmanager
def _zookeeper_errors() -> Iterator[None]:
    try:
        yield
    except NoNodeError:
        raise
    except (KazooException, KazooTimeoutError) as error:
        raise LabFailure(f"ZooKeeper does not answer: {error!r}") from error
