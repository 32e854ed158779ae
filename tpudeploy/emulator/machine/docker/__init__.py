"""Docker as a node sees it: it remembers what it was asked for and starts the stand-in; no image, no text is run."""
