"""The choice of what is looked for, as the settings say."""

from collections.abc import Mapping

from divingbell.border.privacy.analyzer import load
from divingbell.border.privacy.kinds import PERSONAL, SECRETS
from divingbell.border.privacy.scanner import Scanner
from divingbell.errors import ConfigError
from divingbell.settings.privacy import Privacy, PrivacyRules

KINDS_OF: dict[Privacy, frozenset[str]] = {
    "off": frozenset(),
    "secrets": SECRETS,
    "personal": SECRETS | PERSONAL,
}


def make_scanner(privacy: Privacy, rules: PrivacyRules) -> Scanner:
    """Return what finds values by their shapes; expressions of one's own count with every word.

    With "personal" the analyzer that the rules name is loaded, which may take seconds.

    Raises:
        ConfigError: an expression or the analyzer can't be used, or a package is missing.
    """
    for kind, expression in rules.patterns.items():
        _check(kind, expression)
    kinds = KINDS_OF[privacy] | rules.patterns.keys()
    brought = rules.analyzer and privacy == "personal"
    analyzer = load(rules.analyzer, kinds) if brought else None
    return Scanner(KINDS_OF[privacy], rules.patterns, analyzer)


def chosen_fields(privacy: Privacy, rules: PrivacyRules) -> Mapping[str, str]:
    """Return the patterns over fields whose kind is hidden, and the kinds.

    With "secrets" those of personal data are left out, and those of one's own kinds are not.
    """
    left_out = PERSONAL - KINDS_OF[privacy] - rules.patterns.keys()
    return {pattern: kind for pattern, kind in rules.fields.items() if kind not in left_out}


def _check(kind: str, expression: str) -> None:
    try:
        # What matches nothing at all would be found everywhere; Hyperscan says so by itself.
        found = Scanner((), {kind: expression}).finds(" ")
    except ConfigError as error:
        raise ConfigError(f"[privacy_rules]: patterns {kind}: {error}") from None
    if any(find.start >= find.end for find in found):
        raise ConfigError(
            f"[privacy_rules]: patterns {kind}: {expression!r} matches an empty text: "
            "write + in place of *"
        )
