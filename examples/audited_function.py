"""A function of one's own, and what `wordveil audit callable` needs to test it.

    cd examples
    wordveil audit callable audited_function:replace --metric audited_function:distance \
        --words audited_function:WORDS --epsilon 1.61
"""

from secrets import SystemRandom

WORDS = ["anna", "ben", "carla", "david"]
DRAW = SystemRandom()


def distance(first: str, second: str) -> float:
    """Any two words are 1 apart."""
    return float(first != second)


def replace(word: str) -> str:
    """Randomised response: the loss is ln 5, which is 1.609."""
    return word if DRAW.random() < 0.5 else DRAW.choice(WORDS)
