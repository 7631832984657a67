"""The command line. Commands import what they need when they are asked for it."""

from urteil.harness.bytecode import keep_bytecode

keep_bytecode()
