"""GitOps: a plan becomes a comment on a pull request, its approval an apply, and drift an issue."""
