"""A campaign: many models, slices and settings measured under one quota and one budget, which ends in an article."""
