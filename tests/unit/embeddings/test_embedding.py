"""Every accepted file gives the same embedding, and every unusable one is refused with its row or word."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pytest
from gensim.models import KeyedVectors
from gensim.test.utils import datapath

from wordveil.embeddings.embedding import DEMO, GLOVE, Embedding, check_embedding, digest_source, load
from wordveil.errors import EmbeddingError

WORDS = ["the", "été", "don't", "naïve"]
VECTORS = np.array([[1.5, -2, 0.25], [0.1, 0.2, 0.3], [-1e-3, 7, 1e3], [4, 5, 6]], np.float32)


def text_rows(words, vectors):
    return [f"{word} {' '.join(repr(float(value)) for value in row)}" for word, row in zip(words, vectors, strict=True)]


def write_word2vec(path, words, vectors):
    path.write_text("\n".join([f"{len(words)} {vectors.shape[1]}", *text_rows(words, vectors)]) + "\n", "utf-8")


def write_glove(path, words, vectors):
    path.write_text("\n".join(text_rows(words, vectors)) + "\n", "utf-8")


def write_binary(path, words, vectors):
    rows = b"".join(
        word.encode() + b" " + row.astype("<f4").tobytes() + b"\n" for word, row in zip(words, vectors, strict=True)
    )
    path.write_bytes(f"{len(words)} {vectors.shape[1]}\n".encode() + rows)


def write_directory(path, words, vectors, **changes):
    path.mkdir()
    np.save(path / "vectors.npy", vectors)
    (path / "words.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")
    manifest = {"format_version": 1, "rows": len(words), "dim": vectors.shape[1], **changes}
    (path / "embedding.json").write_text(json.dumps(manifest))


WRITERS = {
    "word2vec": write_word2vec,
    "word2vec-binary": write_binary,
    "glove": write_glove,
    "wordveil": write_directory,
}


def written(tmp_path, kind, words=WORDS, vectors=VECTORS):
    path = tmp_path / f"toy.{kind}"
    WRITERS[kind](path, words, vectors)
    return str(path)


def refusal(path, file_format="auto"):
    with pytest.raises(EmbeddingError) as caught:
        load(path, file_format)
    assert caught.value.exit_code == 4
    return str(caught.value)


def assert_toy(embedding):
    assert embedding.words.to_pylist() == WORDS
    assert embedding.vectors.dtype == np.float32
    assert (embedding.vectors == VECTORS).all()


@pytest.mark.parametrize("kind", WRITERS)
def test_load_format_named_or_detected_reads_the_same(tmp_path, kind):
    said = []
    path = written(tmp_path, kind)
    assert_toy(load(path, kind))
    assert_toy(load(path, progress=said.append))
    assert said == [f"reading {path} as {kind}"]


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary", "glove"])
def test_compressed_file(tmp_path, kind):
    packed = tmp_path / "toy.vec.gz"
    with open(written(tmp_path, kind), "rb") as plain, gzip.open(packed, "wb") as out:  # noqa: PTH123
        shutil.copyfileobj(plain, out)
    assert_toy(load(str(packed)))


def test_digest_is_the_content_whatever_the_file(tmp_path):
    digests = {load(written(tmp_path, kind)).digest for kind in WRITERS}
    assert digests == {Embedding(pa.array(WORDS), VECTORS, "elsewhere", ("a warning",)).digest}
    nudged = VECTORS.copy()
    nudged[3, 2] = np.nextafter(nudged[3, 2], np.float32(7))
    flat = np.arange(1, 7, dtype=np.float32)
    others = [
        check_embedding(WORDS, nudged, ""),
        check_embedding([*WORDS[:3], "naive"], VECTORS, ""),
        check_embedding(WORDS[:3], VECTORS[:3], ""),
        check_embedding(["a", "b"], flat.reshape(2, 3), ""),
        check_embedding(["a", "b"], flat[:2].reshape(2, 1), ""),
        check_embedding(["a b"], flat[None], ""),
    ]
    assert len({*digests, *(other.digest for other in others)}) == 7


@pytest.mark.parametrize("name", ["lee_fasttext.vec", "crime-and-punishment.vec", "euclidean_vectors.bin"])
def test_word2vec_files_of_gensim(name):
    said = []
    embedding = load(datapath(name), progress=said.append)
    binary = name.endswith(".bin")
    reference = KeyedVectors.load_word2vec_format(datapath(name), binary=binary)
    assert said[0].endswith("word2vec-binary" if binary else "word2vec")
    assert embedding.words.to_pylist() == reference.index_to_key
    assert (embedding.vectors == reference.vectors).all()


@pytest.mark.parametrize(("name", "kind"), [("toy-model", "auto"), ("lee_fasttext", "fasttext")])
def test_fasttext_binary_has_the_vectors_that_fasttext_prints(name, kind):
    """The second is of the first format, which has no magic number, so that it must be named."""
    said = []
    binary, text = load(datapath(f"{name}.bin"), kind, progress=said.append), load(datapath(f"{name}.vec"))
    assert said[0].endswith("as fasttext")
    assert binary.words.to_pylist() == text.words.to_pylist()
    assert np.abs(binary.vectors - text.vectors).max() < 1e-4


def test_save_and_load_bring_it_back(tmp_path):
    embedding = check_embedding(WORDS, VECTORS, "a source")
    embedding.save(tmp_path / "saved")
    back = load(str(tmp_path / "saved"))
    assert_toy(back)
    assert (back.digest, back.source) == (embedding.digest, "a source")
    with pytest.raises(FileExistsError):
        embedding.save(tmp_path / "saved")


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b", "\x0c", "\x1d"])
def test_words_that_hold_rare_separators_come_back(tmp_path, separator):
    words = [f"a{separator}b", *WORDS[1:]]
    check_embedding(words, VECTORS, "a").save(tmp_path / "saved")
    assert load(str(tmp_path / "saved")).words.to_pylist() == words


def test_eight_bit_directory_is_decoded_by_its_table(tmp_path):
    codes = np.array([[0, 255, 7], [1, 2, 3], [200, 100, 50], [9, 9, 9]], np.uint8)
    write_directory(tmp_path / "small", WORDS, codes, scale=0.03, offset=-3.0)
    expected = (np.float64(0.03) * codes + -3.0).astype(np.float32)
    assert (load(str(tmp_path / "small")).vectors == expected).all()


@pytest.mark.parametrize("kind", WRITERS)
def test_unusable_row_is_named(tmp_path, kind):
    path = written(tmp_path, kind, vectors=VECTORS * [[1], [1], [0], [1]])
    assert f'{path}: row 2 ("don\'t") is all zeros' in refusal(path)


@pytest.mark.parametrize("kind", ["glove", "wordveil"])
def test_empty_word_in_a_file_is_named_by_its_row(tmp_path, kind):
    path = written(tmp_path, kind, ["the", "", "don't", "x"])
    assert f"{path}: the word of row 1 is empty" in refusal(path)


MANY = np.ones((10_000, 2), np.float32)
MANY[9_999] = 0


@pytest.mark.parametrize(
    ("words", "vectors", "problem"),
    [
        ([*map(str, range(10_000))], MANY, r"row 9999 \('9999'\) is all zeros"),
        *((WORDS, VECTORS * [[1], [1], [bad], [1]], "row 2 .* NaN or infinite") for bad in (np.nan, np.inf, -np.inf)),
        (["a", "b", "c", "b"], VECTORS, "'b' is listed more than once, in rows 1 and 3"),
        *((["a", "b", word, "c"], VECTORS, "the word of row 2 is empty") for word in ("", " ", "\u3000", "\t")),
        *((["a", "b", "c", word], VECTORS, "row 3 holds a line break or NUL") for word in ("a\nb", "a\r", "\0a")),
        (WORDS, VECTORS[:3], "there are 4 words, but the vectors have shape"),
        (WORDS, VECTORS[0], "there are 4 words, but the vectors have shape"),
        (WORDS, VECTORS[None], "there are 4 words, but the vectors have shape"),
        (WORDS, np.zeros((4, 0), np.float32), "there are 4 words, but the vectors have shape"),
        ([], np.zeros((0, 3), np.float32), "there are 0 words"),
        (["a", "b"], np.array([[1, 0], [0, 2e9]]), r"the longest vector has length 2e\+09"),
    ],
)
def test_check_embedding_unusable_is_refused_by_row(words, vectors, problem):
    with pytest.raises(EmbeddingError, match=f"toy: .*{problem}|toy: {problem}"):
        check_embedding(words, vectors, "toy")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a 1 2 3\nb 1 2\n", "line 2 has 2 numbers, and the first line has 3"),
        (b"a 1 2 3\nb 1 x 3\n", "line 2 "),
        (b"a 1 2 3\nb 1  3\n", "line 2 "),
        (b"a 1 2\n\xff\xfe 1 2\n", "line 2 is not a UTF-8 word"),
        (b"", ""),
        (b"\n", ""),
        (b"word\n", ""),
    ],
)
def test_load_glove_faulty_line_is_named(tmp_path, content, problem):
    path = tmp_path / "toy.txt"
    path.write_bytes(content)
    assert f"{path}: {problem}" in refusal(str(path))


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary"])
def test_truncated_file_is_refused(tmp_path, kind):
    path = written(tmp_path, kind)
    content = open(path, "rb").read()  # noqa: PTH123, SIM115
    cut = tmp_path / "cut"
    for size in (len(content) * 2 // 3, len(content) - 6):
        cut.write_bytes(content[:size])
        assert str(cut) in refusal(str(cut))


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary", "glove"])
def test_byte_order_mark_and_last_line_break_do_not_matter(tmp_path, kind):
    path = tmp_path / "toy"
    with open(written(tmp_path, kind), "rb") as plain:  # noqa: PTH123
        path.write_bytes((b"" if kind == "word2vec-binary" else codecs.BOM_UTF8) + plain.read().removesuffix(b"\n"))
    assert_toy(load(str(path)))


@pytest.mark.parametrize(("kind", "count"), [("word2vec", 3), ("word2vec", 5), ("word2vec-binary", 3)])
def test_header_of_another_count_is_refused(tmp_path, kind, count):
    path = written(tmp_path, kind)
    with open(path, "r+b") as file:  # noqa: PTH123
        file.write(str(count).encode())
    message = refusal(path)
    assert f"{path}: the first line says {count} words" in message
    if kind == "word2vec":
        assert "write '4 3' there" in message


def test_words_may_hold_spaces_and_none_around_them(tmp_path):
    words = ["the", ". . .", "at name@domain.com", "été"]
    assert load(written(tmp_path, "glove", words)).words.to_pylist() == words
    for content, found in (
        ("2 2 \r\nnew york 1 2 \r\nb 2 1 \r\n\r\n", ["new york", "b"]),
        ("b 2 1\n new york  1 2\n", ["b", "new york"]),
    ):
        (tmp_path / "toy").write_text(content)
        assert load(str(tmp_path / "toy")).words.to_pylist() == found
    (tmp_path / "toy").write_text("b 1 2\n b 2 1\n")
    assert "'b' is listed more than once" in refusal(str(tmp_path / "toy"))


def test_load_misnamed_file_names_the_setting(tmp_path):
    path = tmp_path / "toy.vec.gz"
    path.write_text("2 2\na 1 2\nb 2 1\n")
    assert refusal(str(path)) == f"mechanism.embedding = {path}: is not compressed. Take .gz from its name."
    path.write_bytes(gzip.compress(path.read_bytes())[:-9])
    assert refusal(str(path)).startswith(f"mechanism.embedding = {path}: ends before its last vector")
    (tmp_path / "toy").write_text("2 2\na 1 2\nb 2 1\n", "utf-16")
    message = refusal(str(tmp_path / "toy"))
    assert message.startswith(f"mechanism.embedding = {tmp_path / 'toy'}: is text in UTF-16")
    assert "iconv -f UTF-16 -t UTF-8" in message


def test_truncated_fasttext_file_is_refused(tmp_path):
    cut = tmp_path / "cut.bin"
    content = open(datapath("lee_fasttext_new.bin"), "rb").read()  # noqa: PTH123, SIM115
    for size in (20, 3_000, len(content) // 2):
        cut.write_bytes(content[:size])
        assert f"{cut}: cannot be read as fasttext" in refusal(str(cut))


@pytest.mark.parametrize("name", ["vectors.npy", "words.txt", "embedding.json"])
def test_directory_with_cut_missing_or_pickled_file_is_refused(tmp_path, name):
    path = tmp_path / "toy"
    write_directory(path, WORDS, VECTORS.astype(object))
    assert str(path) in refusal(str(path))
    shutil.rmtree(path)
    write_directory(path, WORDS, VECTORS)
    content = (path / name).read_bytes()
    (path / name).write_bytes(content[: len(content) - 12])
    assert str(path) in refusal(str(path))
    (path / name).unlink()
    assert str(path) in refusal(str(path))


def test_messages_name_the_setting_that_the_caller_has(tmp_path):
    assert re.match(r"mechanism\.embedding = nowhere/glove\.txt: .*demo", refusal("nowhere/glove.txt"))
    for command in (load, digest_source):
        with pytest.raises(EmbeddingError, match=r"^mechanism\.similarity = nowhere: no such file"):
            command("nowhere", setting="mechanism.similarity")
    (tmp_path / "file").write_bytes(bytes.fromhex("ba164f2f") + b"no model")
    with pytest.raises(EmbeddingError, match=r"^mechanism\.similarity = .*Name a file of one of these formats: word"):
        load(str(tmp_path / "file"), setting="mechanism.similarity")
    with pytest.raises(EmbeddingError, match=r"^mechanism\.embedding = .*Set mechanism\.embedding_format to one of"):
        load(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *(
            ({"format_version": version}, f"format_version {version} is not 1. Write it")
            for version in (0, 2, "1", None)
        ),
        ({"dim": 4}, "(4, 3), but embedding.json says 4 x 4"),
    ],
)
def test_a_manifest_of_another_format_or_shape_is_refused(tmp_path, changes, problem):
    write_directory(tmp_path / "toy", WORDS, VECTORS, **changes)
    assert problem in refusal(str(tmp_path / "toy"))


@pytest.mark.parametrize("kind", ["word2vec-binary", "fasttext", "wordveil"])
def test_wrong_format_named_says_which_there_are(tmp_path, kind):
    message = refusal(written(tmp_path, "glove"), kind)
    assert f"cannot be read as {kind}" in message
    assert "word2vec, word2vec-binary, glove, fasttext" in message


def test_normalised_vectors_are_accepted_with_a_warning():
    lengths = np.linalg.norm(VECTORS.astype(np.float64), axis=1)
    (warning,) = check_embedding(WORDS, VECTORS / lengths[:, None], "toy").warnings
    assert "normalised" in warning
    assert check_embedding(WORDS, VECTORS, "toy").warnings == ()
    one_longer = VECTORS / lengths[:, None] * np.array([[1], [1], [1], [1.01]])
    assert check_embedding(WORDS, one_longer, "toy").warnings == ()


@pytest.fixture(scope="module", params=[DEMO, GLOVE])
def shipped(request: pytest.FixtureRequest) -> Embedding:
    return load(request.param)


def test_shipped_embeddings_are_the_sizes_they_claim(shipped: Embedding):
    size, first = {"wordveil": (20_000, ["the", "and", "to", "of"]), "GloVe": (100_000, ["the", "of", "to", "and"])}[
        shipped.source.split()[0]
    ]
    assert (shipped.size, shipped.dimension) == (size, 100)
    words = shipped.words.to_pylist()
    assert len(set(words)) == size
    assert words[:4] == first
    assert set(words[:1500]) > {"a", "i", "don't", "it's", "can't", "he's"}
    assert not {"Dr", "42", "<unk>", "x.y"} & {*words}
