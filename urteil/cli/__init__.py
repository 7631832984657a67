"""The command line. Each command imports its dependencies when it runs."""

from urteil.harness.bytecode_cache import keep_bytecode

keep_bytecode()
