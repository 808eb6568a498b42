"""Reports of what was measured: JSON, CSV, and pages for people."""
