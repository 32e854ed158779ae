"""Format text for people: colour, durations, money, tables and diagnostics. It knows no feature and no plan."""
