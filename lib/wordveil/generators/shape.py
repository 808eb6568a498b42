"""Shape of a generator: its symbols, its layers, and the arrays of its weights.

The model of ER-AE (Bo, Ding, Fung, Iqbal 2021, section 4): a bidirectional encoder of GRU layers reads a sequence of
``length`` symbols; its last states become a latent vector; a generator of GRU layers, which reads the latent vector and
the symbol before, computes how likely each symbol is next.

A GRU cell has the reset gate after the product, as cuDNN's has. With ``sigma`` the logistic function, ``x`` its input
and ``h`` its state::

    r = sigma(x @ input[:, :c]      + h @ hidden[:, :c]      + bias[:c])
    u = sigma(x @ input[:, c:2c]    + h @ hidden[:, c:2c]    + bias[c:2c])
    n = tanh (x @ input[:, 2c:] + bias[2c:] + r * (h @ hidden[:, 2c:] + hidden_bias))
    h = (1 - u) * n + u * h

States are 0 at the beginning in the encoder, and ``tanh(latent @ start + start_bias)`` in the generator. The latent
vector is ``tanh(concat(last states of the last layer, forward and backward) @ latent + latent_bias)``: the paper has no
``tanh`` there. It keeps every activation in [-1, 1], which inference in whole numbers needs. The paper's symbols have
the 768 dimensions of BERT's vectors; here :attr:`GeneratorShape.dimension` is that of the mechanism's embedding.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GeneratorShape:
    """Sizes of a generator.

    Symbols are numbered as in :class:`wordveil.mechanisms.base.TokenBatch`: words ``0 .. size - 1``, :attr:`padding`,
    :attr:`unknown`; after them :attr:`end` and :attr:`start`. The encoder reads words, padding and unknown words. The
    generator writes words, padding and the end, and reads what it wrote, after the start.

    ``size``: number of words, 2 or more. ``dimension``: columns of the embedding. ``cells``: even number in each layer
    of the generator; each direction of the encoder has half as many. ``latent``: dimension of the latent vector.
    ``length``: symbols of every sequence.
    """

    size: int
    dimension: int
    cells: int
    latent: int
    length: int
    encoder_layers: int = 2
    generator_layers: int = 2

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("dimension", 1), ("cells", 2), ("latent", 1), ("length", 1)):
            if not getattr(self, name) >= least:
                raise ValueError(f"Expected {name}={getattr(self, name)} of at least {least}.")
        if self.cells % 2:
            raise ValueError(f"Expected an even number of cells, got {self.cells}.")
        if not min(self.encoder_layers, self.generator_layers) >= 1:
            raise ValueError("Expected at least one layer in the encoder and in the generator.")

    @property
    def padding(self) -> int:
        return self.size

    @property
    def unknown(self) -> int:
        """Symbol of an unknown word, which is never written."""
        return self.size + 1

    @property
    def end(self) -> int:
        """Symbol that ends a text. Symbols written after it do not count."""
        return self.size + 2

    @property
    def start(self) -> int:
        """Symbol that the generator reads first, which is never written."""
        return self.size + 3

    @property
    def outputs(self) -> int:
        """Number of symbols that can be written, the columns of ``output``: words, padding and :attr:`end_column`."""
        return self.size + 2

    @property
    def end_column(self) -> int:
        """Column of ``output`` that means the end."""
        return self.size + 1

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """List the shapes of the weights' arrays, float32, by name."""
        half, cells, latent = self.cells // 2, self.cells, self.latent
        sizes_of: dict[str, tuple[int, ...]] = {"embedding": (self.size + 4, self.dimension)}
        for layer in range(self.encoder_layers):
            width = self.dimension if layer == 0 else cells
            for direction in ("forward", "backward"):
                sizes_of |= _cell(f"encoder.{layer}.{direction}", width, half)
        sizes_of |= {"latent": (cells, latent), "latent_bias": (latent,)}
        for layer in range(self.generator_layers):
            sizes_of |= {f"generator.{layer}.start": (latent, cells), f"generator.{layer}.start_bias": (cells,)}
            sizes_of |= _cell(f"generator.{layer}", self.dimension + latent if layer == 0 else cells, cells)
        return {**sizes_of, "output": (cells, self.outputs), "output_bias": (self.outputs,)}


def _cell(name: str, width: int, cells: int) -> dict[str, tuple[int, ...]]:
    """List the arrays of a GRU cell. The first generator layer reads the embedding and then the latent vector."""
    return {
        f"{name}.input": (width, 3 * cells),
        f"{name}.hidden": (cells, 3 * cells),
        f"{name}.bias": (3 * cells,),
        f"{name}.hidden_bias": (cells,),
    }
