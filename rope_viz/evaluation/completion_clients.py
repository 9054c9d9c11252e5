"""Clients that answer evaluation questions: a local transformers model, or any OpenAI-compatible server.

The protocol: https://platform.openai.com/docs/api-reference/completions, as in vLLM, SGLang, llama.cpp and
`transformers serve`.
"""

from __future__ import annotations

import http.client
import importlib
import ipaddress
import json
import os
import sys
import threading
import urllib.error
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rope_viz.embedding.spec import short_repr
from rope_viz.storage import fetch
from rope_viz.storage.decode_json import decode_json, estimate_memory
from rope_viz.storage.limits import FETCHED_ANSWER_BYTES

INSTALL = "pip install 'rope-viz[transformers]'"
MEMORY_PER_BYTE = 16
"""Bytes of memory for each byte that an answer may have: log-probabilities with their names take up to eight."""
MOST_MEMORY = 2 << 30
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)  # status codes after which a retry may succeed


@dataclass(frozen=True)
class Answer:
    """The generated text, and the number of prompt tokens (None if the engine does not report it)."""

    text: str
    tokens: int | None


class UnavailableError(ValueError):
    """A temporary failure, after which a retry may succeed.

    `is_reached` is False if the server did not answer at all. `pause` is its wish for a pause in seconds.
    """

    def __init__(self, problem: str, *, is_reached: bool, pause: float | None = None) -> None:
        super().__init__(problem)
        self.is_reached, self.pause = is_reached, pause


class Engine(Protocol):
    """Interface of an answering model."""

    def ask(self, text: str, most: int) -> Answer:
        """Return at most `most` greedily decoded tokens after the text.

        Raises `ValueError` if there is no answer, `UnavailableError` if a retry may bring one.
        """

    def count(self, text: str) -> int:
        """Return the number of tokens of the text. Raises `ValueError` if it cannot be determined."""


def is_unencrypted(url: str) -> bool:
    """True if requests to the address can be read on the way: by http to another machine."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def choose_key(url: str, variable: str, *, over_http: bool = False, remedy: str) -> str | None:
    """Return the key in an environment variable if it may be sent to an address; else tell why not on stderr."""
    key = os.environ.get(variable)
    if not key or over_http or not is_unencrypted(url):
        return key
    print(f"rope-viz: the key in {variable} is not sent to {url}, which is not encrypted: {remedy}", file=sys.stderr)
    return None


def is_loopback(host: str) -> bool:
    """True for an address or a name of this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Server:
    """A server at an address such as http://localhost:8000/v1, used by completions, or by messages if `chat`.

    Temporary failures (no connection, overload) raise `UnavailableError`, with the server's own Retry-After. `timeout`
    is the time of a whole request in seconds, from the search for the server's address to the answer's last byte.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        chat: bool = False,
        timeout: float = 600.0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"a server must be an address such as http://localhost:8000/v1, got {short_repr(url)}")
        self.url, self.model, self.chat = url.rstrip("/"), model, chat
        self.key, self.timeout = key, timeout

    def ask(self, text: str, most: int) -> Answer:
        if self.chat:
            content: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
            path = "/chat/completions"
        else:
            content, path = {"prompt": text}, "/completions"
        reply = self.send(path, {"model": self.model, "max_tokens": most, "temperature": 0, **content})
        try:
            choice = reply["choices"][0]
            found = choice["message"]["content"] if self.chat else choice["text"]
            usage = reply.get("usage") or {}
            tokens = usage.get("prompt_tokens")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError(f"{self.url} answered without a choice: {short_repr(reply, 120)}") from None
        return Answer("" if found is None else str(found), tokens if isinstance(tokens, int) else None)

    def count(self, text: str) -> int:
        """Return the prompt tokens that the server reports for a one-token completion."""
        tokens = self.ask(text, 1).tokens
        if tokens is None:
            raise ValueError(f"{self.url} does not report usage: name a folder with the tokenizer (--tokenizer)")
        return tokens

    def models(self) -> list[str]:
        """Return the names of the server's models, at least one."""
        try:
            found = [str(each["id"]) for each in self.once("/models", None)["data"]]
        except (OSError, http.client.HTTPException, KeyError, TypeError) as error:
            wait = " (--timeout)" if isinstance(error, fetch.LateError) else ""
            raise ValueError(
                f"{self.url} does not list its models ({error}){wait}: name one (--served-model)"
            ) from None
        if not found:
            raise ValueError(f"{self.url} has no model")
        return found

    def send(self, path: str, body: Mapping[str, Any], most: int = FETCHED_ANSWER_BYTES) -> Any:
        """Return the answer to a POST as JSON. Raises `UnavailableError` after a temporary failure."""
        try:
            return self.once(path, body, most)
        except urllib.error.HTTPError as error:
            problem = f"{self.url} refused: {error.code} {short_repr(error.read().decode(errors='replace'), 200)}"
            if error.code not in AGAIN:
                raise ValueError(problem) from None
            wish = error.headers.get("Retry-After", "")
            raise UnavailableError(problem, is_reached=True, pause=float(wish) if wish.isdecimal() else None) from None
        except fetch.LateError as error:
            raise UnavailableError(f"{self.url} gave {error} (--timeout)", is_reached=False) from None
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"{self.url} cannot be reached: {error}", is_reached=False) from None

    def once(self, path: str, body: Mapping[str, Any] | None, most: int = FETCHED_ANSWER_BYTES) -> Any:
        """Send one request: a POST, or a GET if there is no body. The answer has at most `most` bytes."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = fetch.fetch(self.url + path, seconds=self.timeout, most=most, data=data, headers=headers)
        except fetch.LargeError as error:
            raise ValueError(f"{self.url} {error}") from None
        if estimate_memory(answer.content) > min(MEMORY_PER_BYTE * most, MOST_MEMORY):
            raise ValueError(f"{self.url} answered with more values than any answer of this kind has")
        return decode_json(answer.content, f"{self.url} answered with something that is not JSON")


class Local:
    """A transformers model in a folder, run with `config` instead of its own (with the scaling to test)."""

    def __init__(self, folder: str | Path, config: Mapping[str, Any] | None = None, *, device: str = "cpu") -> None:
        self.folder, self.config, self.device = str(folder), config, device
        self.lock = threading.Lock()
        self.loaded: tuple[Any, Any] | None = None

    def ask(self, text: str, most: int) -> Answer:
        import torch

        with self.lock:
            model, tokenizer = self.load()
            inputs = tokenizer(text, return_tensors="pt").to(self.device)
            try:
                with torch.inference_mode():
                    output = model.generate(
                        input_ids=inputs["input_ids"],
                        attention_mask=inputs["attention_mask"],
                        max_new_tokens=most,
                        do_sample=False,
                        pad_token_id=tokenizer.pad_token_id or 0,
                    )
            except RuntimeError as error:  # mostly out of memory
                raise ValueError(f"the model failed: {str(error).splitlines()[0]}") from None
            size = inputs["input_ids"].shape[1]
            return Answer(tokenizer.decode(output[0, size:]), size)

    def count(self, text: str) -> int:
        with self.lock:
            return len(self.load()[1](text)["input_ids"])

    def load(self) -> tuple[Any, Any]:
        if self.loaded is None:
            try:
                _, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
            except ImportError:
                raise ValueError(f"a local model needs PyTorch and transformers: {INSTALL}") from None
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            options: dict[str, Any] = {"local_files_only": True, "dtype": "auto"}
            if self.config is not None:
                config = dict(self.config)
                options["config"] = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(self.folder, **options)
            self.loaded = model.eval().to(self.device), tokenizer
        return self.loaded

    def close(self) -> None:
        self.loaded = None


class Counted:
    """An engine whose tokens are counted by a tokenizer in a local folder."""

    def __init__(self, engine: Engine, folder: str | Path) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise ValueError(f"a tokenizer needs transformers: {INSTALL}") from None
        self.engine = engine
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)

    def ask(self, text: str, most: int) -> Answer:
        return self.engine.ask(text, most)

    def count(self, text: str) -> int:
        return len(self.tokenizer(text)["input_ids"])
