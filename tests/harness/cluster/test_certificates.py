from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from urteil.harness.cluster.certificates import Authority

BROKERS = 8


def test_brokers_that_start_together_receive_certificates_of_one_authority() -> None:
    for _ in range(20):
        authority, together = Authority(), Barrier(BROKERS)

        def issue(
            name: str, authority: Authority = authority, together: Barrier = together
        ) -> None:
            together.wait()
            issued = authority.issue(name)
            assert issued.authority == authority.certificate
            issued.certificate.verify_directly_issued_by(authority.certificate)

        with ThreadPoolExecutor(BROKERS) as pool:
            list(pool.map(issue, [f"b{number}" for number in range(BROKERS)]))
