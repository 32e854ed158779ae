"""The unverified facts about Google Cloud that tpudeploy relies on, and how a rehearsal looks at each."""
