"""Diagnosis: why a server is slow, overloaded or failing, by two looks at its metrics; and a runbook."""
