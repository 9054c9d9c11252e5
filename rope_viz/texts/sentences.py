"""Sentences begun, ended and continued as the language does it, and the sentence of an error."""

from __future__ import annotations

from rope_viz.texts.texts import Sentence, Texts

TEXTS = Texts("sentences")


def make_sentence(text: str) -> Sentence:
    """Return a message as a sentence. A key or a model type at the beginning keeps its lower case."""
    ended = end_sentence(text)
    has_capital = TEXTS("first_letter") == "upper" and text.split(" ")[0].isalpha()
    return _with_text(ended, ended[:1].upper() + ended[1:]) if has_capital else ended


def end_sentence(text: str) -> Sentence:
    """Return a text with a period, if it has none."""
    period = TEXTS("period")
    return _with_text(text, text if text.endswith(period) else f"{text}{period}")


def remove_period(text: str) -> Sentence:
    """Return a sentence without its period, as a part of another one."""
    return _with_text(text, text.removesuffix(TEXTS("period")))


def continue_sentence(text: str) -> Sentence:
    """Return a sentence as a later part of another one: without its period, and an article in lower case."""
    part = remove_period(text)
    is_article = part.split(" ")[0] in TEXTS("articles").split()
    return _with_text(part, part[:1].lower() + part[1:]) if is_article else part


def describe_error(error: BaseException) -> str:
    """Return the message of an error, with its values and entries where it is a sentence."""
    message = error.args[0] if len(error.args) == 1 else None
    return message if isinstance(message, Sentence) else str(error)


def is_made_from(text: str, *entries: str) -> bool:
    """Return whether a text was made from one of these entries of a text file."""
    return isinstance(text, Sentence) and not set(entries).isdisjoint(text.entries)


def _with_text(text: str, changed: str) -> Sentence:
    return Sentence(changed, text.values, text.entries) if isinstance(text, Sentence) else Sentence(changed)
