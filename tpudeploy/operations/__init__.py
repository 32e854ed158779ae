"""What a workspace can do beside the life of a deployment: measure, compare, grade, diagnose."""
