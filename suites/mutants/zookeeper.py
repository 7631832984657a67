"""The broker's ZooKeeper session, registration and watches."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import SECURITY


@mutant(
    about="a broker whose session expired does not register again",
    models="KAFKA-7165: /brokers/ids/N not created again after an expiry",
    scenario="sessions-expired",
    guarantee="slow_recovery",
)
def ephemeral_lost_after_expiry(mark: Mark) -> None:
    """Registers a broker only the first time in its process."""

    def make(original: Function) -> Function:
        async def register(registration: Any) -> Any:
            if registration.epoch < 0:
                return await original(registration)
            mark.hit()
            return registration.epoch

        return register

    replace("urteil.broker.zookeeper.registration:Registration.register", make)


@mutant(
    about="a broker exits when its ZooKeeper session expires",
    models="services that end with their session, as HBase's region servers do",
    scenario="session-expired",
    guarantee="unexpected_exit",
    unsimulated="the patch ends the process, which all brokers share",
)
def session_end_is_fatal(mark: Mark) -> None:
    """Ends the process when the session expires."""

    def make(original: Function) -> Function:
        def change_state(session: Any, state: Any, session_id: int) -> None:
            original(session, state, session_id)
            if session.state.name == "EXPIRED":
                mark.hit()
                os._exit(1)

        return change_state

    replace("urteil.broker.zookeeper.session:Session._handle_state_change", make)


@mutant(
    about="a broker whose session expired stops to listen, and its process does not end",
    models="KAFKA-14946: the exit after a fatal fault waits for the thread that it came from",
    scenario="session-expired",
    guarantee="unexpected_exit",
    unsimulated="the simulation judges no listeners",
)
def exit_waits_for_itself(mark: Mark) -> None:
    """Closes the broker's listeners and connections when its session expires, and waits."""
    opened: list[Any] = []

    def remember(original: Function) -> Function:
        async def listen(server: Any, listeners: Any, resolver: Any) -> None:
            opened.append(server)
            await original(server, listeners, resolver)

        return listen

    def make(original: Function) -> Function:
        async def register(registration: Any) -> Any:
            if registration.epoch >= 0:
                mark.hit()
                await asyncio.gather(*(server.close() for server in opened))
                await asyncio.Event().wait()
            return await original(registration)

        return register

    replace("urteil.broker.net.socket_server:SocketServer.listen", remember)
    replace("urteil.broker.zookeeper.registration:Registration.register", make)


@mutant(
    about="after a new ZooKeeper session a broker ignores changes of ACLs, credentials and "
    "settings",
    models="notification watches that are not set again after an expiry",
    scenario="rights-cut-off",
    guarantee="unauthorised",
    unsimulated=SECURITY,
)
def notifications_end_with_session(mark: Mark) -> None:
    """Watches change notifications in the first ZooKeeper session only."""
    first: dict[int, int] = {}

    def make(original: Function) -> Function:
        def on_watch(notices: Any, path: str) -> None:
            session = notices._zk.session_id
            if first.setdefault(id(notices), session) == session:
                original(notices, path)
            else:
                mark.hit()

        return on_watch

    replace("urteil.broker.zookeeper.change_notifications:ChangeNotifications._on_watch", make)
