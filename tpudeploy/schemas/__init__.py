"""Build the JSON Schemas of the documents that are printed and stored."""
