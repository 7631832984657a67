"""Changes of a dynamic quorum's voters. Implements `chaos.quorum_controls.QuorumControls`.

The requests go to the quorum's leader, as those of `kafka-metadata-quorum --bootstrap-controller`.
A broker that forwards them may keep a former leader that has returned: it refreshes the address
only at NOT_CONTROLLER, and the former leader answers NOT_LEADER_OR_FOLLOWER (observed with 3.9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka.errors import for_code

from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.topology import Address, node_id
from urteil.chaos.waiting import until
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.cluster.cluster_state import ClusterState
from urteil.harness.dependencies.kafka import kafka_jar
from urteil.harness.evidence.acts import ADD_VOTER, REMOVE_VOTER
from urteil.harness.evidence.readers.metadata_copies import directory_of
from urteil.harness.protocol.message_schema import UnreadableMessage
from urteil.harness.protocol.schema_requests import send_request
from urteil.harness.targets.target import CONTROLLER

DEADLINE_S = 60.0
REQUEST_S = 5.0
POLL_S = 0.2


class VoterActs:
    """`direct_address` is a controller's listener for the lab, `listener` that for the quorum,
    `metadata_log` the folder of its metadata log."""

    def __init__(
        self,
        *,
        version: str,
        direct_address: Callable[[str], Address],
        state: ClusterState,
        acts: ActLog,
        listener: Callable[[str], Address],
        metadata_log: Callable[[str], Path],
    ) -> None:
        self._version = version
        self._direct_address = direct_address
        self._state = state
        self._acts = acts
        self._listener = listener
        self._metadata_log = metadata_log

    def voters(self) -> Mapping[str, str]:
        return self._state.voters()

    def add_voter(self, node: str) -> None:
        directory = directory_of(self._metadata_log(node))
        host, port = self._listener(node)
        with self._acts.act(ADD_VOTER, node, self.voters()) as after:
            after["directory"] = directory
            self._send_until(
                lambda: self.voters().get(node) == directory,
                "AddRaftVoter",
                TimeoutMs=int(REQUEST_S * 1000),
                VoterId=node_id(node),
                VoterDirectoryId=directory,
                Listeners=[{"Name": CONTROLLER, "Host": host, "Port": port}],
            )

    def remove_voter(self, node: str) -> None:
        voters = self.voters()
        if node not in voters:
            raise ActFailed(f"{node} is no voter of the quorum: {', '.join(voters) or 'static'}")
        with self._acts.act(REMOVE_VOTER, node, voters) as after:
            after["directory"] = voters[node]
            self._send_until(
                lambda: voters[node] not in self.voters().values(),
                "RemoveRaftVoter",
                VoterId=node_id(node),
                VoterDirectoryId=voters[node],
            )

    def _send_until(self, is_done: Callable[[], bool], request: str, **fields: Any) -> None:
        """Repeat the request until `is_done`: the quorum may have no leader, or another change of
        its voters may not be committed yet."""
        failure = ""

        def check_and_send() -> bool:
            nonlocal failure
            if not is_done():
                failure = self._send(request, fields)
            return is_done()

        if not until(check_and_send, deadline_s=DEADLINE_S, poll_s=POLL_S):
            raise ActFailed(f"not done after {DEADLINE_S:g} s; {failure or ActFailed.UNHEEDED}")

    def _send(self, request: str, fields: Mapping[str, Any]) -> str:
        """Send to the quorum's leader. Returns the error, empty for none."""
        leader = self._state.controller()
        if leader is None:
            return "the quorum has no leader"
        address = "{}:{}".format(*self._direct_address(leader))
        jar = kafka_jar("kafka-clients", self._version)
        try:
            answer = send_request(jar, request, address, timeout_s=2 * REQUEST_S,
                                  ClusterId=None, **fields)  # fmt: skip
        except (OSError, UnreadableMessage) as error:
            return f"{leader} does not answer: {error}"
        code = answer["ErrorCode"]
        return f"{for_code(code).__name__}: {answer['ErrorMessage']}" if code else ""
