"""Tuning: the flags of a profile that suit a load best, found on the slice that serves it, with evidence."""
