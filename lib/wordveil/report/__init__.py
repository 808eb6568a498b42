"""Reports of measurements: JSON, CSV, and pages for people."""
