"""Who answers: a transformers model on this machine, or any server that speaks the OpenAI protocol.

The protocol: https://platform.openai.com/docs/api-reference/completions, as vLLM, SGLang, llama.cpp and
`transformers serve` speak it.
"""

from __future__ import annotations

import http.client
import importlib
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rope_viz.embedding.spec import shorten

LARGEST = 4 << 20  # bytes of an answer
INSTALL = "pip install 'rope-viz[transformers]'"
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)  # codes of a server that may answer later


@dataclass(frozen=True)
class Answer:
    """What came next, and how many tokens the text had (None where the engine does not say)."""

    text: str
    tokens: int | None


class Engine(Protocol):
    """Somebody to ask."""

    def ask(self, text: str, most: int) -> Answer:
        """At most `most` tokens after the text, the likeliest ones. Raises `ValueError` where there is no answer."""

    def count(self, text: str) -> int:
        """How many tokens the text has. Raises `ValueError` where that cannot be known."""


class Server:
    """A server at an address such as http://localhost:8000/v1, asked for completions, or in `chat` for messages.

    Failures that pass (no connection, overload) are tried again `retries` times, waiting twice as long each time or
    as long as the server says.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        chat: bool = False,
        timeout: float = 600.0,
        retries: int = 5,
        wait: float = 1.0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"a server must be an address such as http://localhost:8000/v1, got {shorten(url)}")
        self.url, self.model, self.chat = url.rstrip("/"), model, chat
        self.key, self.timeout, self.retries, self.wait = key, timeout, retries, wait

    def ask(self, text: str, most: int) -> Answer:
        """See `Engine`."""
        if self.chat:
            asked: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
            path = "/chat/completions"
        else:
            asked, path = {"prompt": text}, "/completions"
        said = self.send(path, {"model": self.model, "max_tokens": most, "temperature": 0, **asked})
        try:
            choice = said["choices"][0]
            found = choice["message"]["content"] if self.chat else choice["text"]
            usage = said.get("usage") or {}
            tokens = usage.get("prompt_tokens")
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError(f"{self.url} answered without a choice: {shorten(said, 120)}") from None
        return Answer("" if found is None else str(found), tokens if isinstance(tokens, int) else None)

    def count(self, text: str) -> int:
        """By the usage that the server reports for one token more."""
        tokens = self.ask(text, 1).tokens
        if tokens is None:
            raise ValueError(f"{self.url} does not report usage: name a folder with the tokenizer (--tokenizer)")
        return tokens

    def models(self) -> list[str]:
        """The models that the server has, at least one."""
        try:
            found = [str(each["id"]) for each in self.once("/models", None)["data"]]
        except (OSError, http.client.HTTPException, KeyError, TypeError) as error:
            raise ValueError(f"{self.url} does not list its models ({error}): name one (--served-model)") from None
        if not found:
            raise ValueError(f"{self.url} has no model")
        return found

    def send(self, path: str, body: Mapping[str, Any]) -> Any:
        """The answer to a POST as JSON, after as many tries as are allowed."""
        pause = self.wait
        for left in range(self.retries, -1, -1):
            try:
                return self.once(path, body)
            except urllib.error.HTTPError as error:
                reason = f"{error.code} {shorten(error.read(2000).decode(errors='replace'), 200)}"
                if error.code not in AGAIN or not left:
                    raise ValueError(f"{self.url} refused: {reason}") from None
                asked = error.headers.get("Retry-After", "")
                time.sleep(min(float(asked), 300.0) if asked.isdecimal() else pause)
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    raise ValueError(f"{self.url} cannot be reached: {error}") from None
                time.sleep(pause)
            pause = min(2 * pause, 60.0)
        raise AssertionError("the last try returns or raises")

    def once(self, path: str, body: Mapping[str, Any] | None) -> Any:
        """One request: a POST, or a GET without a body."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            found = response.read(LARGEST + 1)
        if len(found) > LARGEST:
            raise ValueError(f"{self.url} answered with more than {LARGEST >> 20} MiB")
        try:
            return json.loads(found)
        except (ValueError, RecursionError):
            raise ValueError(f"{self.url} answered with something that is not JSON") from None


class Local:
    """A transformers model in a folder, run with `config` in place of its own (the scaling set in it)."""

    def __init__(self, folder: str | Path, config: Mapping[str, Any] | None = None, *, device: str = "cpu") -> None:
        self.folder, self.config, self.device = str(folder), config, device
        self.lock = threading.Lock()
        self.loaded: tuple[Any, Any] | None = None

    def ask(self, text: str, most: int) -> Answer:
        """See `Engine`; one question at a time."""
        import torch

        with self.lock:
            model, tokenizer = self.load()
            given = tokenizer(text, return_tensors="pt").to(self.device)
            try:
                with torch.inference_mode():
                    made = model.generate(
                        input_ids=given["input_ids"],
                        attention_mask=given["attention_mask"],
                        max_new_tokens=most,
                        do_sample=False,
                        pad_token_id=tokenizer.pad_token_id or 0,
                    )
            except RuntimeError as error:  # out of memory, most of all
                raise ValueError(f"the model failed: {str(error).splitlines()[0]}") from None
            size = given["input_ids"].shape[1]
            return Answer(tokenizer.decode(made[0, size:]), size)

    def count(self, text: str) -> int:
        """By the model's own tokenizer."""
        with self.lock:
            return len(self.load()[1](text)["input_ids"])

    def load(self) -> tuple[Any, Any]:
        """Model and tokenizer, loaded when first asked."""
        if self.loaded is None:
            try:
                _, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
            except ImportError:
                raise ValueError(f"a local model needs PyTorch and transformers: {INSTALL}") from None
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            options: dict[str, Any] = {"local_files_only": True, "dtype": "auto"}
            if self.config is not None:
                said = dict(self.config)
                options["config"] = transformers.AutoConfig.for_model(said.pop("model_type"), **said)
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(self.folder, **options)
            self.loaded = model.eval().to(self.device), tokenizer
        return self.loaded

    def close(self) -> None:
        """Forget the model, so that the next one finds room."""
        self.loaded = None


class Counted:
    """An engine whose tokens are counted by a tokenizer in a folder of this machine."""

    def __init__(self, engine: Engine, folder: str | Path) -> None:
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise ValueError(f"a tokenizer needs transformers: {INSTALL}") from None
        self.engine = engine
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)

    def ask(self, text: str, most: int) -> Answer:
        """See `Engine`."""
        return self.engine.ask(text, most)

    def count(self, text: str) -> int:
        """By the tokenizer."""
        return len(self.tokenizer(text)["input_ids"])
