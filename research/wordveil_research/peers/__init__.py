"""Other packages, each in an environment of its own, and audits of what they claim."""
