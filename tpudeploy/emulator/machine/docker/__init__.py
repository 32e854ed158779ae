"""Docker as a node sees it: it records requests and starts the stand-in; no image and no text of a profile is run."""
