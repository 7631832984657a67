"""Histories in Jepsen's form: export for `jepsen.tests.kafka`, and import of its runs for
judgement.

Sources: jepsen/tests/kafka.clj, jepsen.history, edn-format.
"""
