"""A real AnalyzerEngine of Presidio without a model, as a user would name it in the settings.

As a script it prints what a scanner finds with it, for a text on stdin. It runs where Presidio is
installed; the packages of Divingbell are named by its arguments.
"""

import json
import site
import sys
from typing import Any


def engine() -> Any:
    import spacy
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    class Blank(SpacyNlpEngine):
        """A pipeline that takes text apart, and knows no names."""

        def __init__(self) -> None:
            super().__init__(models=[{"lang_code": "en", "model_name": "en"}])
            self.nlp: Any = {"en": spacy.blank("en")}

        def load(self) -> None:
            """It is loaded."""

    registry = RecognizerRegistry()
    people = ["Ann Leeson", "Bo Hall"]
    registry.add_recognizer(PatternRecognizer("PERSON", deny_list=people))
    registry.add_recognizer(PatternRecognizer("LOCATION", deny_list=["Oslo"]))
    return AnalyzerEngine(registry=registry, nlp_engine=Blank(), supported_languages=["en"])


def main() -> None:
    for folder in sys.argv[1:]:
        site.addsitedir(folder)
    from divingbell.border.privacy.choosing import make_scanner
    from divingbell.settings.privacy import PrivacyRules

    scanner = make_scanner("personal", PrivacyRules(analyzer="presidio_engine:engine"))
    text = sys.stdin.read()
    json.dump(
        [[find.kind, text[find.start : find.end]] for find in scanner.finds(text)], sys.stdout
    )


if __name__ == "__main__":
    main()
