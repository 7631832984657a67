"""Reasons that several mutants share: why suites/simulation cannot find them.

Clients are those of the mixes that the guarantee of a mutant judges. The examiner of the mix
`questions`, which sends requests of every kind, is judged by `wrong_answer` alone.
"""

INVALID_REQUESTS = "no client sends invalid requests"
REPEATED_BATCHES = "no producer repeats acknowledged batches"
DELETED_RECORDS = "no client deletes records"
DELETED_OFFSETS = "no client deletes committed offsets"
COPIERS = "no transaction commits offsets"
COMPACTED_TRANSACTIONS = "no transaction writes to a compacted topic"

SECURITY = "brokers have neither SASL nor ACLs"
QUOTAS = "no client has a quota"
PROCESSOR_TIME = "requests of the simulation take no processor time"
SETTINGS = "only the retention of topics without records changes"
KEPT_OFFSETS = "committed offsets are kept for a week"
LOG_DIRECTORIES = "brokers have one log directory"
RECOMPRESSION = "no topic recompresses batches"
BANDWIDTH = "no link has a low bandwidth"

NOT_TRIED = "not tried"
NOT_FOUND = "not found by seed 1 of its mix"
NOT_FOUND_BY_THREE = "not found by seeds 1 to 3 of its mix"
