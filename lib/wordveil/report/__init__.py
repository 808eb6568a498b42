"""What was measured, as one report: JSON, CSV, and a page for people."""
