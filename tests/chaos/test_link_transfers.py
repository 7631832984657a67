"""Transfers count pieces and responses, and report how a connection ended."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from urteil.chaos import link_transfers
from urteil.chaos.link_transfers import MONITOR, framed_request, transfer
from urteil.chaos.observations import Link, Transfer

ANSWER = struct.pack(">i", 100) + b"a" * 100
LINK = Link("b1", "b2")
Serve = Callable[[socket.socket], None]
Asker = Callable[..., Transfer]


@pytest.fixture
def ask() -> Iterator[Asker]:
    """A transfer of three requests of 60 bytes, one by one, to a server with this behaviour."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def ask(serve: Serve, timeout_s: float = 30.0) -> Transfer:
            def run() -> None:
                connection, _ = server.accept()
                with connection:
                    serve(connection)

            threading.Thread(target=run, daemon=True).start()
            request = [framed_request(60)] * 3
            return transfer(
                LINK, *server.getsockname(), requests=request, framed=True, timeout_s=timeout_s
            )

        yield ask


def answer(connection: socket.socket, times: int) -> None:
    for _ in range(times):
        assert len(connection.recv(60)) == 60
        connection.sendall(ANSWER)


def test_all_requests_are_answered(ask: Asker) -> None:
    def serve(connection: socket.socket) -> None:
        answer(connection, 3)
        assert connection.recv(1) == b""
        time.sleep(0.1)  # how long this server takes to close

    result = ask(serve)
    assert (result.ended, result.answers, result.received_bytes) == ("answered", 3, 312)
    assert (result.closing_ms or 0) > 90


def test_early_close_is_reported(ask: Asker) -> None:
    def serve(connection: socket.socket) -> None:
        answer(connection, 1)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(60):  # what is not read when a socket closes would reset it
            pass

    result = ask(serve)
    assert (result.ended, result.answers, result.closing_ms) == ("closed", 1, None)


def test_reset_is_reported(ask: Asker) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(60)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert ask(serve).ended == "reset"


def test_silence_times_out(ask: Asker) -> None:
    result = threading.Event()
    value = ask(lambda _connection: result.wait(60) and None, timeout_s=0.5)
    result.set()
    assert (value.ended, value.answers) == ("timed out", 0)


def test_pieces_are_counted(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, read = threading.Semaphore(0), link_transfers._Reader.read

    def read_and_signal(reader: link_transfers._Reader) -> bool:
        value = read(reader)
        taken.release()
        return value

    monkeypatch.setattr(link_transfers._Reader, "read", read_and_signal)

    def serve(connection: socket.socket) -> None:
        connection.recv(60)
        for at in range(0, len(ANSWER), 26):
            connection.sendall(ANSWER[at : at + 26])
            assert taken.acquire(timeout=60)  # so that the next piece is another

    result = ask(serve)
    assert (result.pieces, result.largest_piece_bytes) == (4, 26)


def test_refused_connection_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    result = transfer(LINK, *address, requests=[MONITOR], framed=False, timeout_s=0.5)
    assert result.ended == "refused"


@pytest.mark.parametrize("size", [25, 26, 1000, 30_000])
def test_requests_have_the_requested_size(size: int) -> None:
    question = framed_request(size)
    assert len(question) == size
    assert struct.unpack_from(">i", question)[0] == size - 4
