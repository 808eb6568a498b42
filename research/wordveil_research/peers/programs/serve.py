"""The protocol of another package's process: it runs in an environment of its own, knows nothing of wordveil, and
answers over its standard input and output, so that no text is written to a file.

First line in: JSON with ``words`` (a text file, one word a line), ``vectors`` (a .npy file, float32), ``epsilon`` (null
where there is none) and ``kept`` (a directory for what is made of these public files alone). One line of JSON out:
``about``. Then every line in is JSON with ``texts`` (each a list of words, or one string where the package cuts texts
itself) and ``seed`` (a whole number, or null for a secret one). Out comes ``texts``, as many and in the same
form, and ``seconds`` of processor time. A failure comes back as ``error``: the kind of exception, never its message,
which may hold text. An empty input ends the process.

A script may read ``mechanism`` and ``options`` of the first question too: which of the package's mechanisms, and its
parameters. An audit sets ``errors``: a draw that fails then writes the kind of exception in angle brackets, since what
a package does at its limits is an outcome as well.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Sanitise = Callable[[list[Any], "int | None"], list[Any]]


def tell_errors(draw: Callable[[str], Any], task: dict[str, Any]) -> Callable[[str], str]:
    """Draw a word; where the task asks for ``errors``, a failure is written as what was drawn."""

    def attempt(word: str) -> str:
        try:
            return str(draw(word))
        except Exception as error:
            if not task.get("errors"):
                raise
            return f"<{type(error).__name__}>"

    return attempt


def serve(load: Callable[[dict[str, Any]], tuple[Sanitise, dict[str, Any]]]) -> None:
    """Answer until the input ends.

    ``load``: takes the first question, and returns a function that sanitises texts under a seed, and what to say of it.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints must not stand among the answers
    sanitise: Sanitise | None = None
    for line in sys.stdin:
        question = json.loads(line)
        started = time.process_time()
        try:
            if sanitise is None:
                sanitise, about = load(question)
                answer = {"about": about}
            else:
                answer = {"texts": sanitise(question["texts"], question["seed"])}
        except Exception as error:  # noqa: BLE001 - the other side reports it, whatever it is
            answer = {"error": type(error).__name__}
        print(json.dumps({**answer, "seconds": time.process_time() - started}), file=answers, flush=True)
