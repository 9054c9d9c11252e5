"""The reader in real llama.cpp: its logits are those that emulation predicts, and so is what it recalls.

Optional: llama-cpp-python is built from source for some ten minutes, so CI has none. To run what it is needed for:
`pip install gguf llama-cpp-python==0.3.36`.
"""

import dataclasses
import shlex

import numpy as np
import pytest

from rope_viz.advice.plan.export import export
from rope_viz.embedding.scaling import Linear, NtkAware, Yarn
from rope_viz.models.rope_config import to_config
from rope_viz.runtimes import emulate
from rope_viz.studies.heads import Turning
from rope_viz.tiny_lm import checkpoints, numpy_model
from rope_viz.tiny_lm.recall import text
from tests.tiny_lm.gguf_file import neighbours, scaling_keys, write_gguf

pytestmark = pytest.mark.float32_products

LENGTH = 1024
READER = checkpoints.load_tiny_lm("seed-0")


def long(scaling):
    return dataclasses.replace(READER.spec, scaling=scaling, target=LENGTH)


SPECS = {
    "plain": READER.spec,
    "linear": long(Linear(factor=4.0)),
    "ntk": long(NtkAware(factor=4.0)),
    "yarn": long(Yarn(factor=4.0)),
    # llama.cpp does not know attention_factor: it computes its own.
    "yarn without attention factor": long(Yarn(factor=4.0, attention=1.0)),
}
OPTIONS = {
    "--rope-scale": ("rope_freq_scale", lambda value: 1.0 / float(value)),
    "--rope-freq-base": ("rope_freq_base", float),
    "--yarn-orig-ctx": ("yarn_orig_ctx", int),
    "--yarn-beta-fast": ("yarn_beta_fast", float),
    "--yarn-beta-slow": ("yarn_beta_slow", float),
}


def run(folder, flags, tokens, rows):
    """The logits of real llama.cpp, (rows, vocabulary), with the flags as its Python binding names them."""
    import llama_cpp

    kinds = {"none": 0, "linear": 1, "yarn": 2}
    options, words = {}, shlex.split(flags)
    for flag, value in zip(words[::2], words[1::2], strict=True):
        if flag == "--rope-scaling":
            options["rope_scaling_type"] = kinds[value]
        elif flag in OPTIONS:
            name, read = OPTIONS[flag]
            options[name] = read(value)
    # Keys and values are kept as float16 unless told otherwise; that alone is worth 0.1 of a logit.
    whole = {"type_k": llama_cpp.GGML_TYPE_F32, "type_v": llama_cpp.GGML_TYPE_F32}
    llama = llama_cpp.Llama(
        str(folder / "reader.gguf"), n_ctx=LENGTH, n_batch=LENGTH, logits_all=True, verbose=False, **whole, **options
    )
    llama.eval(tokens.tolist())
    return np.array(llama.scores[: len(tokens)])[rows]


@pytest.mark.llama_cpp
@pytest.mark.parametrize("name", SPECS)
def test_llama_cpp_gives_the_logits_that_emulation_predicts(name, tmp_path):
    spec = SPECS[name]
    write_gguf(READER, tmp_path / "reader.gguf")
    config = dict(READER.config) | to_config(READER.spec)
    said = export(spec, to="llama.cpp", config=config)
    predicted = emulate(config, runtime="llama.cpp", length=LENGTH, flags=said.flags)
    turn = Turning(predicted.inv_freq, predicted.attention_factor)
    right = []
    for seed in range(3):
        asked = text(LENGTH, seed)
        theirs = run(tmp_path, said.flags, asked.tokens[0], asked.rows)
        ours = numpy_model.logits(READER, asked.tokens[0], turn, rows=asked.rows)
        np.testing.assert_allclose(theirs, ours, atol=1e-3)
        assert np.abs(theirs - ours).mean() < 1e-4
        right.append((theirs.argmax(axis=1) == asked.answers[0], ours.argmax(axis=1) == asked.answers[0]))
    theirs, ours = np.mean(right, axis=(0, 2))
    assert abs(theirs - ours) <= 1 / 48
    intended = [
        numpy_model.logits(
            READER, text(LENGTH, s).tokens[0], Turning.from_spec(spec, LENGTH), rows=text(LENGTH, s).rows
        )
        for s in range(3)
    ]
    if said.faithful:
        share = np.mean([one.argmax(axis=1) == text(LENGTH, s).answers[0] for s, one in enumerate(intended)])
        assert abs(theirs - share) <= 1 / 48


@pytest.mark.llama_cpp
def test_file_without_original_length_recalls_as_emulated(tmp_path):
    """`--yarn-orig-ctx` forgotten: the training context takes its place, here four times too long."""
    spec = dataclasses.replace(READER.spec, target=LENGTH)  # the file says 1024 is what it was trained with
    write_gguf(READER, tmp_path / "reader.gguf", spec)
    flags = "--rope-scaling yarn --rope-scale 4"
    config = dict(READER.config) | {"max_position_embeddings": LENGTH}
    predicted = emulate(config, runtime="llama.cpp", length=LENGTH, flags=flags)
    turn = Turning(predicted.inv_freq, predicted.attention_factor)
    for seed in range(2):
        asked = text(LENGTH, seed)
        theirs = run(tmp_path, flags, asked.tokens[0], asked.rows).argmax(axis=1) == asked.answers[0]
        ours = numpy_model.logits(READER, asked.tokens[0], turn, rows=asked.rows).argmax(axis=1) == asked.answers[0]
        assert abs(theirs.mean() - ours.mean()) <= 1 / 16


def test_neighbouring_pairs_give_the_same_scores():
    random = np.random.default_rng(0)
    weight, x, y = random.normal(size=(8, 6)), random.normal(size=6), random.normal(size=6)
    angle = np.exp(1j * np.array([0.3, 1.1]))

    def score(rows, first, second):
        q, k = (rows.reshape(2, 4, 6) @ v for v in (x, y))
        q, k = (z[:, first] + 1j * z[:, second] for z in (q, k))
        return ((q * angle) * k.conj()).real.sum(axis=1)

    halves = score(weight, [0, 1], [2, 3])
    np.testing.assert_allclose(score(neighbours(weight, 2), [0, 2], [1, 3]), halves)


def test_a_method_without_keys_is_refused():
    assert scaling_keys(SPECS["plain"]) == {}
    with pytest.raises(ValueError, match="no keys for 'ntk'"):
        scaling_keys(SPECS["ntk"])
