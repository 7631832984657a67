"""The exit codes of failures. Those of verdicts: 0 PASS, 1 FAIL, 2 UNKNOWN."""

EXIT_WRONG_USAGE = 254
EXIT_LAB_FAILURE = 255
