"""The ports of this machine that a standing cluster with `--port` needs, checked before
its start."""

from __future__ import annotations

import errno
import socket

import psutil

from urteil.chaos.topology import LOCALHOST

HIGHEST_PORT = 65_535


def range_problem(first: int, count: int) -> str:
    """Why the range of `count` ports from `first` is invalid, with the remedy. Empty when it is
    valid."""
    last = first + count - 1
    if last <= HIGHEST_PORT:
        return ""
    return (
        f"--port {first} needs {count} ports, {first} to {last}, and the last one is "
        f"{HIGHEST_PORT}: choose {HIGHEST_PORT - count + 1} or less"
    )


def port_problem(first: int, count: int) -> str:
    """Why `count` ports from `first` cannot be used, with the remedy. Empty when they can."""
    last = first + count - 1
    for port in range(first, last + 1):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((LOCALHOST, port))
            except OSError as error:
                return _port_error(first, last, port, error)
    return ""


def _port_error(first: int, last: int, port: int, error: OSError) -> str:
    needs = f"--port {first} needs ports {first} to {last} of {LOCALHOST}"
    if error.errno == errno.EACCES:
        return f"{needs}, and {port} is for root alone: choose a port from 1024 on"
    return f"{needs}, and {port} is taken{_holder(port)}: free it, or choose another --port"


def _holder(port: int) -> str:
    """The process that holds the port, where visible."""
    try:
        connections = [
            connection
            for connection in psutil.net_connections("tcp")
            if connection.laddr and connection.laddr.port == port
        ]
        names_by_pid = {
            connection.pid: psutil.Process(connection.pid).name()
            for connection in connections
            if connection.pid
        }
    except psutil.Error:
        return ""
    return "".join(f" by {name} (pid {pid})" for pid, name in list(names_by_pid.items())[:1])
