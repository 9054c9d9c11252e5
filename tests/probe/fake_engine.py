"""A server that computes a chosen hypothesis of a probe, behind one of the interfaces that real servers have."""

import contextlib
import functools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from rope_viz.models.model_config import ModelConfig
from rope_viz.probe import plain_model
from rope_viz.probe.hypotheses import INTENDED, ProbedPrompt, list_hypotheses
from rope_viz.probe.shrink_config import shrink_config
from rope_viz.probe.tokens import VOCABULARY


class FakeEngine:
    """What a server computes: `name` is a hypothesis of the config, or a function of the prompt's length."""

    def __init__(self, config, name=INTENDED, *, noise=0.0, served=None):
        small = shrink_config(ModelConfig.read(config))
        self.model = ModelConfig.read(small)
        self.reference = functools.partial(plain_model.compute_log_probs, small, plain_model.draw_weights(small))
        self.name = name if callable(name) else lambda length: name
        self.noise, self.drawn, self.served = noise, np.random.default_rng(1), served

    def compute(self, prompt, rows):
        """Return the log-probabilities of the whole vocabulary at these rows, shape (rows, vocabulary)."""
        asked = ProbedPrompt(self.model, len(prompt), self.served or self.model.limit)
        name = self.name(len(prompt))
        targets = np.array([(row, token) for row in rows for token in range(VOCABULARY)])
        found = self.reference(prompt, targets, {name: list_hypotheses(asked)[name]})[name]
        return (found + self.drawn.normal(0.0, self.noise, found.size)).reshape(len(rows), VOCABULARY)

    def answer(self, prompt):
        """Return the log-probability of every token of a prompt but the first."""
        asked = ProbedPrompt(self.model, len(prompt), self.served or self.model.limit)
        name = self.name(len(prompt))
        targets = np.array([(row, token) for row, token in enumerate(prompt[1:])])
        found = self.reference(prompt, targets, {name: list_hypotheses(asked)[name]})[name]
        return (found + self.drawn.normal(0.0, self.noise, found.size)).tolist()


def read_ids(prompt):
    """Return the token ids of a prompt, as the probe's tokenizer has them."""
    return list(prompt.encode()) if isinstance(prompt, str) else prompt


def complete(engine, body):
    """Return vLLM's answer."""
    ids = read_ids(body["prompt"])
    if "prompt_logprobs" not in body:
        return {"choices": [{"text": "a"}]}
    listed = [
        {str(token): {"logprob": value, "rank": 1}, "0": {"logprob": -0.5}}
        for token, value in zip(ids[1:], engine.answer(ids), strict=True)
    ]
    return {"choices": [{"text": "a", "prompt_logprobs": [None, *listed]}]}


def echo(engine, body):
    """Return the answer of a server with `echo`."""
    if not body.get("echo"):
        return {"choices": [{"text": "a"}]}
    found = engine.answer(read_ids(body["prompt"]))
    return {"choices": [{"text": "a", "logprobs": {"token_logprobs": [None, *found, -0.1]}}]}


def list_next(engine, body):
    """Return the answer of llama.cpp's server, which takes texts and ids at its own path."""
    if "n_probs" not in body:
        return {"choices": [{"text": "a", "logprobs": None}]}
    ids = read_ids(body["prompt"])
    row = engine.compute(ids, [len(ids) - 1])[0]
    listed = [{"id": token, "logprob": value} for token, value in enumerate(row.tolist())]
    return {"completion_probabilities": [{"id": 1, "logprob": -0.1, "top_logprobs": listed}]}


def list_likeliest(engine, body):
    """Return the answer of a server that takes texts only, and gives the likeliest next tokens by their text."""
    if not isinstance(body["prompt"], str):
        raise ValueError("Input should be a valid string")
    if "logprobs" not in body or body.get("echo"):
        return {"choices": [{"text": "a"}]}
    ids = read_ids(body["prompt"])
    row = engine.compute(ids, [len(ids) - 1])[0]
    best = np.argsort(-row)[: body["logprobs"]]
    return {"choices": [{"text": "a", "logprobs": {"top_logprobs": [{chr(one): row[one] for one in best}]}}]}


def say_nothing(engine, body):
    """Return an answer without log-probabilities."""
    return {"choices": [{"text": "a"}]}


@contextlib.contextmanager
def serve(engine, reply=complete, *, listed=None, content=None):
    """Yield the address of a server whose completions `reply` makes; `content` is sent for everything instead."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            model = {"id": "probe"} | ({"max_model_len": engine.served} if engine and engine.served else {})
            self.send(200 if self.path.endswith("/models") else 404, listed or {"data": [model]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                self.send(200, reply(engine, body))
            except ValueError as error:
                self.send(400, {"error": str(error)})

        def send(self, code, data):
            out = content if content is not None else json.dumps(data).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_):
            """Print nothing."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        listener.server_close()
