"""Training of tiny_lm: lengths 32, 64, 128 and 256 in turn, then fine-tuning at four times the length per method.

The curriculum is essential: started at length 64 it learns nothing in the same time. Half the sequences ask for facts;
the others are repeated segments and Markov chains. AdamW, https://arxiv.org/abs/1711.05101.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from rope_viz.embedding.spec import RopeSpec
from rope_viz.models.rope_config import to_config
from rope_viz.storage.write_file import write_file
from rope_viz.studies.heads import Turning
from rope_viz.studies.tensors import open_tensors, write_tensors
from rope_viz.tiny_lm import tasks
from tools.tiny_lm.torch_model import Network, table

Config: TypeAlias = dict[str, Any]

CONFIG: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": tasks.VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6,
    "initializer_range": 0.02,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": tasks.START,
    "eos_token_id": None,
    "dtype": "float32",
}
SAVE_EVERY = 100  # steps


@dataclass(frozen=True)
class Course:
    """Schedule and data mix of a training: so many steps at each length, with `tokens` tokens per batch.

    `facts` and `chains` are shares of the sequences, the rest are repeats. Chains start at length `chains_from`,
    because with them the two heads take far longer to form. The learning rate rises over `warmup` steps and falls along
    a cosine to `last` of itself.
    """

    lengths: tuple[int, ...] = (32, 64, 128, 256)
    steps: tuple[int, ...] = (400, 400, 700, 1500)
    tokens: int = 4096
    rate: float = 5e-3
    last: float = 0.05
    warmup: int = 50
    decay: float = 0.1
    facts: float = 0.5
    chains: float = 0.25
    chains_from: int = 64

    def length(self, step: int) -> int:
        """Return the length of the sequences at a step, counted from 0."""
        return self.lengths[int(np.searchsorted(np.cumsum(self.steps), step, side="right"))]

    def rate_at(self, step: int) -> float:
        fall = 0.5 + 0.5 * math.cos(math.pi * step / sum(self.steps))
        return self.rate * min(1.0, (step + 1) / self.warmup) * (self.last + (1.0 - self.last) * fall)


PRE_TRAINING = Course()
FINE_TUNING = Course(lengths=(1024,), steps=(400,), rate=1e-3, last=1.0, warmup=20)


def batch(course: Course, seed: int, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sequences of a step, their targets and the weight of each answer, all (batch, length).

    The loss is the mean over the answers of facts and repeats, plus that over the chains' tokens, by their shares:
    chains have so many more targets that they would dominate. The same for the same seed and step.
    """
    random = np.random.default_rng([seed, step])
    length = course.length(step)
    total = course.tokens // length
    facts = round(total * course.facts)
    repeated = total - facts - (round(total * course.chains) if length >= course.chains_from else 0)
    facts_part = tasks.questions(random, facts, length, even=False)
    targets = np.full((total, length), tasks.NOT_ASKED, dtype=np.int64)
    targets[:facts, facts_part.rows] = facts_part.answers
    repeated_part, targets[facts : facts + repeated] = tasks.repeats(random, repeated, length)
    walks, _ = tasks.chains(random, total - facts - repeated, length)
    targets[facts + repeated :, :-1] = walks[:, 1:]
    weight = np.zeros((total, length), dtype=np.float32)
    for part in (slice(0, facts + repeated), slice(facts + repeated, total)):
        answers = targets[part] != tasks.NOT_ASKED
        weight[part] = len(answers) / total * answers / max(answers.sum(), 1)
    sequences = np.concatenate([facts_part.tokens, repeated_part, walks])
    return torch.from_numpy(sequences), torch.from_numpy(targets), torch.from_numpy(weight)


def train(
    network: Network,
    spec: RopeSpec,
    course: Course,
    *,
    seed: int,
    progress: Path | None = None,
    at: dict[int, Callable[[], None]] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[float]:
    """Train in place and return the loss of every step. `at` maps step counts to callbacks.

    With `progress` the state is saved to that file every hundred steps, and a stopped training resumes there with
    identical numbers.
    """
    flat = [weight for weight in network.parameters() if weight.ndim < 2]
    wide = [weight for weight in network.parameters() if weight.ndim >= 2]
    optimizer = torch.optim.AdamW(
        [{"params": wide, "weight_decay": course.decay}, {"params": flat, "weight_decay": 0.0}],
        lr=course.rate,
        betas=(0.9, 0.98),
        fused=True,
    )
    losses: list[float] = []
    if progress is not None and progress.exists():
        saved = torch.load(progress, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        losses = list(saved["losses"])
    tables = {length: table(Turning.from_spec(spec, length), length) for length in course.lengths}
    for step in range(len(losses), sum(course.steps)):
        for group in optimizer.param_groups:
            group["lr"] = course.rate_at(step)
        loss = network.loss(*batch(course, seed, step), *tables[course.length(step)])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if at and step + 1 in at:
            at[step + 1]()
        if (step + 1) % SAVE_EVERY == 0:
            say(f"step {step + 1} of {sum(course.steps)}, length {course.length(step)}, loss {loss.item():.3f}")
            if progress is not None:
                dump(progress, {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses})
    return losses


def dump(path: Path, state: dict[str, Any]) -> None:
    """Write the state of a training whole, so that an interruption loses nothing."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_file(path, buffer.getvalue())


def new_network(seed: int, config: Config = CONFIG) -> Network:
    """Return an untrained network, the same for the same seed."""
    torch.manual_seed(seed)
    return Network(config)


def save(network: Network, folder: Path, config: Config, about: dict[str, str]) -> None:
    """Write `config.json` and `model.safetensors` (float16, loaded as float32) in transformers' format."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().numpy().astype(np.float16) for name, value in network.state_dict().items()}
    write_tensors(folder / "model.safetensors", weights, {"format": "pt", **about})
    write_file(folder / "config.json", (json.dumps(config, indent=2) + "\n").encode())


def open_network(folder: Path) -> tuple[Network, Config]:
    """Load a saved model for further training."""
    config: Config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    network, file = Network(config), open_tensors(folder / "model.safetensors")
    network.load_state_dict(
        {name: torch.from_numpy(file.read_tensor(name).astype(np.float32)) for name in file.entries}
    )
    return network, config


def config_of(spec: RopeSpec, config: Config = CONFIG) -> Config:
    """Return the config of a model trained with this embedding. Raises `ValueError` if no config can express it."""
    rest = {key: value for key, value in config.items() if key != "rope_theta"}
    return {**rest, **to_config(spec)}
