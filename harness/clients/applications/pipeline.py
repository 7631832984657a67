"""The user's own application: `urteil run pipeline --app COMMAND`.

A shell starts it with its settings in the environment. It is killed with all its children. It reads
the first topic and writes to the second, and keeps keys and values, because copies are recognised
by them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from urteil.harness.clients.applications.declaration import Application, AppProcess, Context
from urteil.harness.clients.applications.progress import uncopied_values
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.scenario import Scenario, TopicFact

EXAMPLE = f"{shlex.quote(sys.executable)} -m urteil.harness.clients.copy_app"


def command(context: Context, name: str) -> list[str]:
    """The command that starts the application as client `name`."""
    source, sink = (topic.name for topic in context.load.topics[:2])
    settings = {
        "URTEIL_BOOTSTRAP_SERVERS": context.servers,
        "URTEIL_INPUT_TOPIC": source,
        "URTEIL_OUTPUT_TOPIC": sink,
        "URTEIL_GROUP": context.group,
        "URTEIL_CLIENT_ID": name,
    }
    program = ApplicationOptions.of(context.load).app or EXAMPLE
    return ["env", *(f"{key}={value}" for key, value in settings.items()), "/bin/sh", "-c", program]


def check_topics(topics: Sequence[TopicFact]) -> None:
    """ValueError unless there is one topic to copy from and one to copy to."""
    kinds = [topic.copies for topic in topics]
    if kinds != [False, True]:
        raise ValueError("a pipeline needs two topics: its input, and its output with copies=true")


def instances(scenario: Scenario) -> int:
    """The workload option `apps`."""
    return ApplicationOptions.of(scenario.workload).apps


APPLICATION = Application(
    name="pipeline",
    about="the user's own program, which copies one topic to another (--app)",
    processes=(AppProcess(count=instances, command=command),),
    remaining=uncopied_values,
)
