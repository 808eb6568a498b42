"""Word vectors from public text, for languages without an embedding at hand: see docs/text-policies.md#languages.

The files have a sentence or a paragraph a line, in UTF-8. They must be public, and must not be the corpus that is to be
sanitised. Words are found as the job finds them, so that the vectors are of the words that it looks up.

    python examples/word_vectors.py sentences.txt --output german.vec
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from gensim.models import KeyedVectors, Word2Vec

from wordveil.text.stop_words import load_stop_words
from wordveil.text.tokeniser import Tokeniser, fold_words

LINES = 10_000


class Sentences:
    """The lines of files as lists of words; gensim reads them once for each epoch. Words with digits are left out."""

    def __init__(self, files: Sequence[Path], tokeniser: str = "words") -> None:
        self._files = files
        self._tokeniser = Tokeniser(tokeniser)

    def __iter__(self) -> Iterator[list[str]]:
        for file in self._files:
            with file.open(encoding="utf-8") as stream:
                while lines := [line for line, _ in zip(stream, range(LINES), strict=False)]:
                    yield from self._cut(lines)

    def _cut(self, lines: Sequence[str]) -> Iterator[list[str]]:
        found = self._tokeniser.cut_words(self._tokeniser.normalise(pa.array(lines, pa.string())))
        words = fold_words(found.words).to_pylist()
        for start, end in zip(found.offsets, found.offsets[1:], strict=False):
            yield [word for word in words[start:end] if not any(map(str.isdigit, word))]


def train(
    files: Sequence[Path],
    output: Path,
    *,
    dimension: int,
    min_count: int,
    size: int,
    epochs: int,
    tokeniser: str,
    without_stop_words: str | None,
) -> int:
    """Train vectors and write them in word2vec's text format, the most frequent word first. Returns how many."""
    # One thread, so that the same files give the same vectors.
    model = Word2Vec(
        Sentences(files, tokeniser),
        vector_size=dimension,
        min_count=min_count,
        max_final_vocab=size,
        epochs=epochs,
        sg=1,
        seed=1,
        workers=1,
    )
    left_out = {*load_stop_words(None, without_stop_words)} if without_stop_words else set()
    words = [word for word in model.wv.index_to_key if word not in left_out]
    written = KeyedVectors(dimension)
    written.add_vectors(words, model.wv[words])
    written.save_word2vec_format(str(output))
    return len(words)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and say what was written."""
    parser = argparse.ArgumentParser(description="Train word vectors from public text.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--min-count", type=int, default=20, help="rarer words are left out")
    parser.add_argument("--size", type=int, default=20_000, help="the most frequent words are kept")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument(
        "--without-stop-words", metavar="de", help="leave out a language's list; see docs/text-policies.md#languages"
    )
    parser.add_argument("--tokeniser", default="words", help="as text.tokeniser of the job")
    chosen = vars(parser.parse_args(arguments))
    print(f"{train(**chosen):,} words in {chosen['output']}")


if __name__ == "__main__":
    main()
