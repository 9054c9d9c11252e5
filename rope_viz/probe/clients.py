"""Ask a server for the log-probabilities of a probe's prompts, by whichever of four interfaces it has."""

from __future__ import annotations

import contextlib
import http.client
import math
import urllib.error
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rope_viz.embedding.spec import short_repr
from rope_viz.evaluation.completion_clients import Server, UnavailableError
from rope_viz.probe.answers import Entry
from rope_viz.probe.tokens import FIRST, LAST, VOCABULARY, to_text
from rope_viz.storage.decode_json import ContentError
from rope_viz.storage.fetch import LateError
from rope_viz.storage.limits import FETCHED_ANSWER_BYTES

PREFIXES = 12
"""Lengths at which a server is asked that says nothing of the tokens of its prompt."""
LARGEST = 256 << 20
"""Bytes of an answer with log-probabilities of a prompt."""
TOKEN = 1 << 10
"""Bytes of it for each token of the prompt. vLLM writes about 100."""
FEW = 5
"""Tokens of which such a server is asked the log-probabilities, where it does not give them for the vocabulary."""


class NoAnswerError(Exception):
    """A server that cannot be reached, or that is none."""


class NoLogProbsError(Exception):
    """A server that gives no log-probabilities."""


class OtherLengthError(ValueError):
    """A server that answers about more or fewer tokens than were sent."""


@dataclass(frozen=True)
class ServedModel:
    """What a server says of itself: the name of its model, and the longest length, None where it does not say."""

    model: str
    longest: int | None


@dataclass(frozen=True)
class ServerInterface:
    """One way to ask: its name, and the function that asks for a prompt."""

    name: str
    ask: Callable[[Sequence[int]], list[Entry]]


def open_server(url: str, timeout: float, key: str | None = None) -> Server:
    """Return the server at an address, with or without /v1. Raises `ValueError` for what is no address."""
    address = url.rstrip("/")
    address = address if address.endswith("/v1") else f"{address}/v1"
    return Server(address, "", key=key, timeout=timeout)


def find_root(server: Server) -> Server:
    """Return the server at its address without /v1, where llama.cpp has its own interface."""
    url = server.url.removesuffix("/v1")
    return Server(url, server.model, key=server.key, timeout=server.timeout)


def read_served(server: Server) -> ServedModel:
    """Return what a server says of itself. Raises `NoAnswerError`."""
    try:
        first = get(server, "/models")["data"][0]
        longest = first.get("max_model_len")
        if longest is None:
            with contextlib.suppress(NoAnswerError, ValueError):
                longest = get(find_root(server), "/props")["default_generation_settings"]["n_ctx"]
        return ServedModel(str(first["id"]), longest if isinstance(longest, int) and longest > 0 else None)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise NoAnswerError(f"{server.url} does not list its models: is it an OpenAI-compatible server?") from None


def get(server: Server, path: str) -> Any:
    """Return the answer to a GET as JSON. Raises `NoAnswerError`."""
    try:
        return server.once(path, None)
    except ContentError:
        raise NoAnswerError(f"{server.url}{path}: {NOT_JSON}") from None
    except urllib.error.HTTPError as error:
        raise NoAnswerError(f"{server.url}{path} answered {error.code}: {OTHER_ADDRESS}") from None
    except LateError as error:
        raise NoAnswerError(f"{server.url}{path} gave {error} (--timeout)") from None
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"{server.url} cannot be reached: {error}") from None
    except ValueError as error:  # an answer that is too large
        raise NoAnswerError(str(error)) from None


def post(server: Server, path: str, body: Mapping[str, Any], tokens: int = 0) -> Any:
    """Return the answer to a POST as JSON. Raises `NoAnswerError`, and `ValueError` where the server refuses.

    An answer may be larger the more tokens of a prompt it is about.
    """
    try:
        return server.send(path, body, min(FETCHED_ANSWER_BYTES + TOKEN * tokens, LARGEST))
    except ContentError:
        raise NoAnswerError(f"{server.url}{path}: {NOT_JSON}") from None
    except UnavailableError as error:
        if error.is_reached:  # some servers answer 500 to what they do not know
            raise ValueError(str(error)) from None
        raise NoAnswerError(str(error)) from None


def find_interface(server: Server, model: str) -> ServerInterface:
    """Return the first interface that gives log-probabilities. Raises `NoAnswerError` and `NoLogProbsError`."""
    refusals: list[str] = []
    for name, make in INTERFACES.items():
        for as_text in (False, True):
            ask = make(server, model, as_text)
            try:
                found = ask(SAMPLE)
            except NoAnswerError:
                raise
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                # What says most comes first.
                refusals.insert(0 if isinstance(error, OtherLengthError) else len(refusals), str(error))
                continue
            if any(entry is not None for entry in found):
                return ServerInterface(name + (" with texts" if as_text else ""), ask)
    try:
        post(server, "/completions", {"model": model, "max_tokens": 1, "prompt": write_prompt(SAMPLE[:1], True)})
    except ValueError as error:
        raise NoAnswerError(f"no prompt was answered: {error}") from None
    why = f": {refusals[0]}" if refusals else ""
    raise NoLogProbsError(f"{server.url} gives no log-probabilities of a prompt or of the next token{why}")


IMPOSSIBLE = -1000.0
"""Log-probabilities below this are a server's word for none."""
NOT_JSON = "the answer is not JSON"
OTHER_ADDRESS = "is it the address of an OpenAI-compatible server?"
SAMPLE = [FIRST + place for place in range(8)]


def write_prompt(prompt: Sequence[int], as_text: bool) -> str | list[int]:
    """Return a prompt as it is sent."""
    return to_text(list(prompt)) if as_text else list(prompt)


def make_prompt_logprobs(server: Server, model: str, as_text: bool) -> Callable[[Sequence[int]], list[Entry]]:
    """Return a function that asks by `prompt_logprobs`, as vLLM has it."""

    def ask(prompt: Sequence[int]) -> list[Entry]:
        body = {"model": model, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        request = {**body, "prompt": write_prompt(prompt, as_text)}
        choice = read_choice(post(server, "/completions", request, len(prompt)))
        listed = choice.get("prompt_logprobs")
        if not isinstance(listed, list):
            return [None] * (len(prompt) - 1)
        check_length(len(listed), prompt)
        return [read_own(entry, id) for entry, id in zip(listed[1:], prompt[1:], strict=True)]

    return ask


def check_length(found: int, prompt: Sequence[int]) -> None:
    """Raise `OtherLengthError` where a server answers about more or fewer tokens than were sent."""
    if found != len(prompt):
        why = "it adds or drops tokens, such as one at the start"
        raise OtherLengthError(f"the server makes {found:,} tokens of a prompt of {len(prompt):,}: {why}")


def read_own(entry: Any, id: int) -> float | None:
    """Return the log-probability of the prompt's own token in what vLLM lists of one position."""
    own = entry.get(str(id)) if isinstance(entry, Mapping) else None
    value = own.get("logprob") if isinstance(own, Mapping) else own
    return float(value) if value is not None and is_log_prob(value) else None


def make_echo(server: Server, model: str, as_text: bool) -> Callable[[Sequence[int]], list[Entry]]:
    """Return a function that asks by `echo` with `logprobs`, as OpenAI's first interface had it."""

    def ask(prompt: Sequence[int]) -> list[Entry]:
        body = {"model": model, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        request = {**body, "prompt": write_prompt(prompt, as_text)}
        choice = read_choice(post(server, "/completions", request, len(prompt)))
        listed = (choice.get("logprobs") or {}).get("token_logprobs")
        if not isinstance(listed, list):
            return [None] * (len(prompt) - 1)
        check_length(min(len(listed), max(len(listed) - 1, len(prompt))), prompt)  # the next token may follow
        return [float(value) if is_log_prob(value) else None for value in listed[1 : len(prompt)]]

    return ask


def make_vocabulary(server: Server, model: str, as_text: bool) -> Callable[[Sequence[int]], list[Entry]]:
    """Return a function that asks by `n_probs`, as llama.cpp's server has it, at prompts of growing length."""
    root = find_root(server)

    def ask(prompt: Sequence[int]) -> list[Entry]:
        def ask_next(start: Sequence[int]) -> Entry:
            body = {"n_predict": 1, "temperature": 0, "n_probs": VOCABULARY, "cache_prompt": True}
            found = post(root, "/completion", {**body, "prompt": write_prompt(start, as_text)})
            listed = found.get("completion_probabilities") if isinstance(found, Mapping) else None
            first = listed[0] if isinstance(listed, list) and listed else {}
            return {
                one["id"]: float(one["logprob"])
                for one in first.get("top_logprobs", ())
                if isinstance(one.get("id"), int) and is_log_prob(one.get("logprob"))
            } or None

        return ask_prefixes(prompt, ask_next)

    return ask


def make_next_token(server: Server, model: str, as_text: bool) -> Callable[[Sequence[int]], list[Entry]]:
    """Return a function that asks for the likeliest next tokens by `logprobs`, at prompts of growing length."""

    def ask(prompt: Sequence[int]) -> list[Entry]:
        def ask_next(start: Sequence[int]) -> Entry:
            body = {"model": model, "max_tokens": 1, "temperature": 0, "logprobs": FEW}
            choice = read_choice(post(server, "/completions", {**body, "prompt": write_prompt(start, as_text)}))
            return dict(read_likeliest(choice.get("logprobs"))) or None

        return ask_prefixes(prompt, ask_next)

    return ask


def read_likeliest(logprobs: Any) -> Iterator[tuple[int, float]]:
    """Yield id and log-probability of the tokens that OpenAI's first interface lists by their text."""
    listed = logprobs.get("top_logprobs") if isinstance(logprobs, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed else {}
    for text, value in first.items() if isinstance(first, Mapping) else ():
        if len(text) == 1 and FIRST <= ord(text) <= LAST and is_log_prob(value):
            yield ord(text), float(value)


def ask_prefixes(prompt: Sequence[int], ask_next: Callable[[Sequence[int]], Entry]) -> list[Entry]:
    """Return what a server says of the token after some beginnings of a prompt, whose lengths grow."""
    rows = len(prompt) - 1
    count = min(rows, PREFIXES)
    chosen = {round(rows * (place + 1) / count) for place in range(count)}
    return [ask_next(prompt[: row + 1]) if row + 1 in chosen else None for row in range(rows)]


INTERFACES: Mapping[str, Callable[[Server, str, bool], Callable[[Sequence[int]], list[Entry]]]] = {
    "prompt_logprobs": make_prompt_logprobs,
    "echo with logprobs": make_echo,
    "n_probs": make_vocabulary,
    "logprobs of the next token": make_next_token,
}
"""The ways to ask, the best one first."""


def read_choice(reply: Any) -> Mapping[str, Any]:
    """Return the first choice of a completion. Raises `ValueError` where there is none."""
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ValueError(f"the server answered without a choice: {short_repr(reply, 120)}")
    return choices[0]


def is_log_prob(value: Any) -> bool:
    """Return whether a value can be a log-probability; -inf and vLLM's -9999 for it say nothing."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and IMPOSSIBLE < value < math.inf
