"""Preview of a run."""
