"""What keys say together: run over the tree, not the model, so that one wrong value hides no other problem."""
