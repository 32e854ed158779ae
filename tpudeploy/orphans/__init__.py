"""Resources in the project that carry our label and that no state tracks."""
