"""Consumer groups: read, listed, described, reset by every option, deleted."""

from __future__ import annotations

from urteil.suites.courses.lab import File, Lab, Tool

READ = "kafka-console-consumer --topic visits --group my-first-application"
RESET = "kafka-consumer-groups --group my-first-application --topic visits --reset-offsets"
RECORDS = "".join(f"{n}:visit {n}\n" for n in range(30))
DESCRIBE = "kafka-consumer-groups --describe --group my-first-application"


def reset(option: str, *shows: str) -> Tool:
    return Tool(line=f"{RESET} {option} --execute", is_ordered=False,
                shows=("my-first-application visits 0 ", *shows))  # fmt: skip


LABS = (
    Lab(
        name="groups",
        about="a group that reads, resumes, is listed, described and deleted",
        steps=(
            Tool(line="kafka-topics --create --topic visits --partitions 3 "
                      "--replication-factor 3"),
            Tool(line="kafka-console-producer --topic visits --property parse.key=true "
                      "--property key.separator=:", stdin=RECORDS),
            Tool(line=f"{READ} --from-beginning --max-messages 30", is_ordered=False, count=30),
            Tool(line=f"{READ} --from-beginning --timeout-ms 4000", count=0),
            Tool(line="kafka-consumer-groups --list", is_ordered=False,
                 shows=("my-first-application",)),
            Tool(line=DESCRIBE, until=True, is_ordered=False,
                 shows=("my-first-application visits 0", " 0 - - -")),
            Tool(line=f"{DESCRIBE} --state", shows=("Empty 0",)),
            Tool(line=f"{DESCRIBE} --members", count=1),
            Tool(line="kafka-consumer-groups --list --state", is_ordered=False,
                 shows=("my-first-application Empty",)),
            Tool(line="kafka-consumer-groups --list --state Stable", count=1),
            Tool(line="kafka-consumer-groups --describe --group nobody", exit_code=0,
                 shows=("does not exist",)),
            Tool(line="kafka-consumer-groups --delete-offsets --group my-first-application "
                      "--topic visits:0", shows=("visits 0 Successful",)),
            Tool(line="kafka-consumer-groups --delete --group nobody", exit_code=0,
                 shows=("GroupIdNotFoundException",)),
        ),
    ),
    Lab(
        name="resets",
        about="offsets of a group, reset by every option",
        steps=(
            Tool(line=f"{RESET} --to-earliest --dry-run", is_ordered=False,
                 shows=("my-first-application visits 0 0",)),
            reset("--to-earliest", "visits 1 0", "visits 2 0"),
            Tool(line=f"{READ} --max-messages 30", is_ordered=False, count=30),
            reset("--to-latest"),
            reset("--shift-by -2"),
            reset("--shift-by 1"),
            reset("--to-offset 3", "visits 0 3", "visits 1 3", "visits 2 3"),
            reset("--to-current", "visits 0 3"),
            reset("--by-duration PT1H", "visits 0 0"),
            reset("--to-datetime 2020-01-01T00:00:00.000", "visits 0 0"),
            reset("--to-datetime 2099-01-01T00:00:00.000"),
            Tool(line="kafka-consumer-groups --group my-first-application --topic visits:1 "
                      "--reset-offsets --to-offset 2 --execute", shows=("visits 1 2",)),
            Tool(line="kafka-consumer-groups --group my-first-application --all-topics "
                      "--reset-offsets --to-offset 1 --export --dry-run", is_ordered=False,
                 shows=("visits,0,1",)),
            File(name="offsets.csv", text="visits,0,4\nvisits,1,5\nvisits,2,1\n"),
            Tool(line="kafka-consumer-groups --group my-first-application --reset-offsets "
                      "--from-file $folder/offsets.csv --execute", is_ordered=False,
                 shows=("visits 0 4", "visits 1 5", "visits 2 1")),
            Tool(line=DESCRIBE, is_ordered=False, shows=("visits 1 5",)),
            Tool(line=f"{RESET} --to-earliest", is_ordered=False,
                 shows=("my-first-application visits 0 0",)),
            Tool(line="kafka-consumer-groups --delete --group my-first-application",
                 shows=("Deletion of requested consumer groups ('my-first-application') "
                        "was successful.",)),
            Tool(line=DESCRIBE, exit_code=0, shows=("does not exist",)),
        ),
    ),
)  # fmt: skip
