"""Actions on a token: it is replaced by a drawn word or a value of its class, left out, or copied."""

from __future__ import annotations

HIDE, DROP, KEEP, SHOW = 0, 1, 2, 3
