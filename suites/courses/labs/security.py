"""TLS and ACLs: a user without rights, rights added, listed and removed."""

from __future__ import annotations

from urteil.suites.courses.lab import LIKE_KAFKA, Lab, LabCluster, Tool

LOCKED = LabCluster(name="locked", brokers=1, settings=LIKE_KAFKA[1:], tls=True, acl=True)
ACL = "kafka-acls --topic secret"
LABS = (
    Lab(
        name="acls",
        about="TLS with certificates of users, ACLs added, listed and removed",
        cluster=LOCKED,
        steps=(
            Tool(line="kafka-topics --create --topic secret --partitions 1 --replication-factor 1",
                 shows=("Created topic secret.",)),
            Tool(line="kafka-topics --list", user="bob", count=0),
            Tool(line="kafka-console-producer --topic secret --producer-property "
                      "max.block.ms=5000", user="bob", stdin="by bob\n",
                 shows=("Not authorized to access topics: [secret]",)),
            Tool(line=f"{ACL} --add --allow-principal User:bob --operation Write "
                      "--operation Describe", is_ordered=False,
                 shows=("Adding ACLs for resource", "operation=WRITE, permissionType=ALLOW")),
            Tool(line="kafka-console-producer --topic secret", user="bob", stdin="by bob\n"),
            Tool(line="kafka-console-consumer --topic secret --from-beginning --group readers "
                      "--max-messages 1", user="bob",
                 shows=("Not authorized to access",)),
            Tool(line=f"{ACL} --add --allow-principal User:bob --consumer --group readers",
                 is_ordered=False, shows=("resourceType=GROUP, name=readers",)),
            Tool(line="kafka-console-consumer --topic secret --from-beginning --group readers "
                      "--max-messages 1", user="bob", shows=("by bob",)),
            Tool(line=f"{ACL} --add --deny-principal User:bob --deny-host 198.18.0.1 "
                      "--operation Read", is_ordered=False, shows=("permissionType=DENY",)),
            Tool(line=f"{ACL} --list", is_ordered=False, shows=("principal=User:bob",)),
            Tool(line=f"{ACL} --list --authorizer-properties", release="2.8.0", is_ordered=False,
                 shows=("principal=User:bob",)),
            Tool(line=f"{ACL} --add --authorizer-properties --allow-principal User:carol "
                      "--operation Read", release="2.8.0", is_ordered=False,
                 shows=("principal=User:carol",)),
            Tool(line=f"{ACL} --list", until=True, is_ordered=False,
                 shows=("principal=User:carol",)),
            Tool(line="kafka-acls --topic team- --resource-pattern-type prefixed --add "
                      "--allow-principal User:bob --operation All",
                 shows=("patternType=PREFIXED",)),
            Tool(line="kafka-topics --create --topic team-notes --partitions 1 "
                      "--replication-factor 1", user="bob",
                 shows=("Created topic team-notes.",)),
            Tool(line=f"{ACL} --remove --allow-principal User:bob --operation Write --force"),
            Tool(line="kafka-console-producer --topic secret --producer-property "
                      "max.block.ms=5000", user="bob", stdin="again\n",
                 shows=("Not authorized to access topics: [secret]",)),
            Tool(line=f"{ACL} --remove --force"),
            Tool(line=f"{ACL} --list", until=True, count=0),
        ),
    ),
)  # fmt: skip
