"""Format text for people: colour, durations, money, figures and tables. It knows no feature and no plan."""
