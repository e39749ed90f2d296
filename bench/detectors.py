"""One detector of others, in an environment of its own: texts on stdin, what it finds on stdout.

    python detectors.py presidio|datafog|scrubadub

Each line is a list of texts. The answer is a line with the places and kinds of each text, and the
seconds of processor time for all. `faker` in their place answers with telephone numbers.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Found = list[tuple[int, int, str]]
KINDS = {
    "EMAIL_ADDRESS": "EMAIL",
    "email": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "phone": "PHONE",
    "CREDIT_CARD": "CARD",
    "credit_card": "CARD",
    "US_SSN": "SSN",
    "social_security_number": "SSN",
    "IBAN_CODE": "IBAN",
    "IP_ADDRESS": "IP",
}
"""Their names for our kinds."""
COUNTRIES = (
    "en_US", "en_GB", "en_CA", "en_AU", "en_IN", "de_DE", "de_AT", "de_CH", "fr_FR", "es_ES",
    "it_IT", "nl_NL", "sv_SE", "pl_PL", "pt_BR", "da_DK", "fi_FI", "no_NO", "cs_CZ", "ja_JP",
)  # fmt: skip


def presidio() -> Callable[[str], Found]:
    """With its patterns alone: a blank pipeline in place of a model."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    class Blank(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__(models=[{"lang_code": "en", "model_name": "en"}])
            self.nlp: Any = {"en": spacy.blank("en")}
            self.nlp["en"].max_length = 1 << 30

        def load(self) -> None:
            """It is loaded."""

    # With the list that it brings: it would ask the network for a newer one.
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())
    engine = AnalyzerEngine(nlp_engine=Blank(), supported_languages=["en"])
    entities = [name for name in KINDS if name.isupper()]

    def find(text: str) -> Found:
        results = engine.analyze(text, language="en", entities=entities)
        return [(each.start, each.end, each.entity_type) for each in results]

    return find


def datafog() -> Callable[[str], Found]:
    from datafog.processing.text_processing.regex_annotator import RegexAnnotator

    annotator = RegexAnnotator()

    def find(text: str) -> Found:
        _, result = annotator.annotate_with_spans(text)
        return [(span.start, span.end, span.label) for span in result.spans]

    return find


def scrubadub() -> Callable[[str], Found]:
    import scrubadub as package

    scrubber = package.Scrubber()
    for name in ("credential", "twitter", "url"):
        scrubber.remove_detector(name)

    def find(text: str) -> Found:
        return [(filth.beg, filth.end, filth.type) for filth in scrubber.iter_filth(text)]

    return find


def faker_numbers() -> list[str]:
    """Telephone numbers in the forms of many countries."""
    from faker import Faker

    numbers = []
    for country in COUNTRIES:
        maker = Faker(country)
        maker.seed_instance(7)
        numbers += [maker.phone_number() for _ in range(100)]
    return numbers


def found_by(find: Callable[[str], Found], texts: list[str]) -> tuple[list[Found], float]:
    """What it finds in each text, by our names, and the seconds."""
    started = time.process_time()
    found = [find(text) for text in texts]
    taken = time.process_time() - started
    named = [[(start, end, KINDS.get(kind, kind)) for start, end, kind in each] for each in found]
    return named, taken


def main() -> None:
    if sys.argv[1] == "faker":
        sys.stdin.readline()
        print(json.dumps((faker_numbers(), 0)), flush=True)
        return
    find = {"presidio": presidio, "datafog": datafog, "scrubadub": scrubadub}[sys.argv[1]]()
    find("Warm up: ann@example.org, +49 151 12345678, 4111 1111 1111 1111")
    for line in sys.stdin:
        print(json.dumps(found_by(find, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
