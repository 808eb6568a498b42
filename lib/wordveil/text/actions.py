"""What happens to a token: a drawn word or a value of its class stands for it, or it is left out or copied."""

from __future__ import annotations

HIDE, DROP, KEEP, SHOW = 0, 1, 2, 3
