"""`python -m urteil.broker [--check] server.properties [--override key=value ...]`."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from pathlib import Path

from urteil.broker import garbage_collection
from urteil.broker.base.clock import Clock
from urteil.broker.broker import Broker
from urteil.broker.broker_id import with_broker_id
from urteil.broker.config.broker_config import BrokerConfig, load_config
from urteil.broker.config.log_levels import join_families
from urteil.broker.config.property_file import load_properties
from urteil.broker.config.values import ConfigError, known_keys
from urteil.broker.environment import Environment
from urteil.broker.process_log import log_to
from urteil.broker.stack_dump import dump_on_sigquit
from urteil.broker.zookeeper.registration import AlreadyRegistered

log = logging.getLogger("main")

USAGE = "usage: python -m urteil.broker [--check] server.properties [--override key=value ...]"


def main(argv: list[str] | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; 0 after a clean shutdown, 1 when it cannot run."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["--check"]:
        return check(words[1:])
    log_to(sys.stdout)
    try:
        config = read_config(words)
    except (ConfigError, OSError) as error:
        log.critical("%s", error)
        return 1
    return _run(config)


def check(argv: list[str]) -> int:
    """Read a property file as a start would, without starting: 1 when it is refused.

    The reason is printed to stderr, and the names of all settings that the broker knows to stdout.
    """
    print("\n".join(sorted(known_keys())))
    try:
        read_config(argv)
    except (ConfigError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def read_config(argv: list[str]) -> BrokerConfig:
    """Return the configuration in the property file, with the overrides applied. Raises
    ConfigError, OSError."""
    if not argv or argv[0].startswith("-"):
        raise ConfigError(USAGE)
    properties = load_properties(Path(argv[0]))
    rest = argv[1:]
    while rest:
        if rest[0] != "--override" or len(rest) < 2 or "=" not in rest[1]:
            raise ConfigError(USAGE)
        key, _, value = rest[1].partition("=")
        properties[key.strip()] = value.strip()
        rest = rest[2:]
    try:
        return load_config(properties)
    except ConfigError as error:
        raise ConfigError(f"{argv[0]}: {error}") from None


def _run(config: BrokerConfig) -> int:
    import uvloop

    # the log cleaner's thread may delay the event loop by this time, not by Python's 5 ms
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(config))


async def serve(config: BrokerConfig) -> int:
    """Start the broker, wait for a signal, stop the broker. Returns the exit code."""
    join_families()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    dump_on_sigquit(loop)
    starting = loop.create_task(_start_broker(config))
    waiting = loop.create_task(stopping.wait())
    await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        return 0
    if (error := starting.exception()) is not None:
        if not isinstance(error, (OSError, TimeoutError, ConfigError, AlreadyRegistered)):
            log.critical("cannot start", exc_info=error)
        else:
            log.critical("cannot start: %s", error)
        return 1
    broker = starting.result()
    garbage_collection.begin()
    collecting = loop.create_task(garbage_collection.collect(lambda: broker.is_busy))
    await waiting
    collecting.cancel()
    await broker.stop()
    return 0


async def _start_broker(config: BrokerConfig) -> Broker:
    environment = Environment()
    broker = Broker(
        await with_broker_id(config, environment), Clock(), random.Random(), environment
    )
    await broker.start()
    return broker


if __name__ == "__main__":
    sys.exit(main())
