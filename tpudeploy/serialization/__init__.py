"""Values as JSON documents and back, with a format number each."""
