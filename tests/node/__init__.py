"""What a machine gets: rendered, run, and held against what the profile said."""
