"""Exit codes and what they mean. Errors carry their own; these are the rest."""

from __future__ import annotations

SUCCESS = 0
ERROR = 1
CHANGES = 2  # only with -detailed-exitcode
BUG = 70
INTERRUPTED = 130
NOT_YET = 12  # saved; a re-run goes on
REFUSED = 13  # a check, a policy, an attestation or a rollback said no
