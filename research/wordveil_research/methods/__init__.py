"""Attackers and tasks of papers: plug-ins of ``wordveil.attackers`` and ``wordveil.tasks``."""
