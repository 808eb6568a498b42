"""Audits, which try to refute what a mechanism, a bundle or a release claims."""
