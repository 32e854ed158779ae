"""From profiles and observations to a plan: every default, every change with its cause, every precondition."""
