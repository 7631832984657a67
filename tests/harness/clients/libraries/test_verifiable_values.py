"""Values of VerifiableProducer identify their send; other numbers do not."""

from urteil.harness.clients.libraries.verifiable_values import prefix_of
from urteil.harness.clients.payload import FOREIGN, decode


def test_value_identifies_run_client_and_sequence():
    for client in ("p1", "p64", "p3.2", "p1.20"):
        result = decode("r1", f"{prefix_of('r1', client)}.17".encode(), b"3")
        assert (result.value_id, result.client, result.sequence) == (f"r1/{client}/17", client, 17)
        assert result.intact


def test_value_of_no_client_of_the_run_has_no_sender():
    result = prefix_of("r1", "p1")
    for value in (
        f"{prefix_of('r2', 'p1')}.17",
        f"{result}",
        f"{result}.",
        f"{result}.x",
        "1.5",
        ".",
    ):
        decoded = decode("r1", value.encode(), b"3")
        assert (decoded.value_id, decoded.intact) == (None, False), value
        assert decoded.value_id != FOREIGN
