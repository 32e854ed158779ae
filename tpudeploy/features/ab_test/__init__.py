"""An A/B of one value of a profile: its arms, their order, what differs between them and which one to keep."""
