"""The slice of Cloud Storage that a state backend needs: objects with generations, over the JSON API."""
