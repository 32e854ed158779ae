"""Rules between keys: they run over the tree, not the model, so that one wrong value hides no other problem."""
