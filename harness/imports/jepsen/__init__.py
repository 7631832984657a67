"""Histories in Jepsen's form: `jepsen.tests.kafka` reads what is exported, and what one of its runs
left is judged by our guarantees. Sources: jepsen/tests/kafka.clj, jepsen.history, edn-format."""
