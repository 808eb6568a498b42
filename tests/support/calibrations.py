"""Calibrations with made figures, for tests of what is printed and shown."""

from __future__ import annotations

import numpy as np

from wordveil.measures.calibration.figures import Calibration, EpsilonMeaning, FoundEpsilon, LikelyOutputs, WordFigure
from wordveil.privacy.recovery import PriorRecovery, Recovered, Recovery
from wordveil.scores.counts import count_bins

EPSILONS = (1.0, 2.0, 5.0, 10.0, 20.0)
FACTS = {"embedding": "demo", "words": "10,000 of 20,000", "runs": "1,000", "threshold of K_w and inputs": "0.001"}


def make_figure(
    name: str, values: np.ndarray, worst: str = "the", *, largest: bool = False, scale: int = 1
) -> WordFigure:
    """A statistic of words with these values, of which a histogram has ``scale`` times as much."""
    bins = count_bins(values) if values.dtype.kind == "i" else ()
    values = values / scale
    low, first, middle, last, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    extreme = float(values.max() if largest else values.min())
    spread = (low, first, middle, last, high)
    said = f"what {name} is, in words."
    return WordFigure(name, said, float(values.mean()), extreme, worst, spread, False, bins, scale)


def make_meaning(epsilon: float) -> EpsilonMeaning:
    rng = np.random.default_rng(3)
    kept = 1 - np.exp(-epsilon / 8)
    stays = rng.binomial(1000, np.clip(rng.normal(kept, 0.1, 2000), 0, 1)).astype(np.int64)
    others = np.maximum(1, (1000 - stays) * rng.uniform(0.5, 1, 2000)).astype(np.int64)
    recovery = Recovery(
        PriorRecovery(5e-05, (Recovered(1, 0.8 * kept, 0.8 * kept), Recovered(20, 0.9 * kept, 0.95 * kept))),
        PriorRecovery(0.0954, (Recovered(1, 0.0954 + 0.85 * kept, None),)),
    )
    return EpsilonMeaning(
        epsilon=epsilon,
        pure_epsilon=2.9 * epsilon,
        delta=1e-12,
        nearest_loss=0.9 * epsilon,
        share_kept=float(kept),
        share_in_cluster=None,
        words=(
            make_figure("N_w", stays, largest=True, scale=1000),
            make_figure("S_w", others),
            make_figure("K_w", others // 9, "of"),
            make_figure("inputs", np.maximum(1, others // 3), "of"),
            make_figure("H_inf", np.log2(1000 / np.maximum(stays, 1)), "house"),
            make_figure("moved", 1.2 - kept * rng.uniform(0.9, 1.1, 2000)),
        ),
        recovery=recovery.to_dict(),
        utility={"text_words": 100.0, "points_50": 230 / epsilon, "words_95": 520 / epsilon},
        examples=tuple(
            LikelyOutputs(
                word,
                ((word, kept), *((other, (1 - kept) / 9) for other in ("ferry", "bus", "carriage", "station"))),
                is_exact=False,
            )
            for word in ("train", "house", "doctor", "incomprehensibilities")
        ),
    )


def make_calibration(epsilons: tuple[float, ...] = EPSILONS) -> Calibration:
    epsilon = FoundEpsilon("share_kept=0.3", 2.85, 2.81, 2.9, 0.3003, is_exact=False)
    meanings = tuple(map(make_meaning, epsilons))
    return Calibration("laplace", FACTS, meanings, (epsilon,), ("K_w is defined by this package.",))
