"""What a release guarantees: metrics, relations, guarantees, events and their price. No arrays, no Spark."""
