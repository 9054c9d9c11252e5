"""The kit names each planted mistake, and passes the functions of transformers, flash-attention and this package."""

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.verify import check_rope
from rope_viz.advice.verify.conformance import make_kit
from rope_viz.kernels import rotate_qk
from rope_viz.models.model_config import from_config

pytestmark = pytest.mark.float32_products

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "conformance_flash_attn.json").read_text())


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """Return the folder of the kit."""
    folder = tmp_path_factory.mktemp("kit")
    for name, content in make_kit().items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def cases(kit):
    """Return the cases that rotate the first channels of a head; the others: test_conformance_deepseek_v4.py."""
    return [case for case in check_rope.load_cases(kit) if not case["rotary_start"]]


def some(cases, *starts):
    return [case for case in cases if case["id"].startswith(starts)]


class Engine:
    """A rotary embedding by the formulas of transformers' modeling_rope_utils, in which mistakes can be planted."""

    def __init__(self, mistake=""):
        self.mistake = mistake

    def read(self, config):
        rope = config["rope_parameters"]
        head = config.get("qk_rope_head_dim", config.get("head_dim"))
        share = rope.get("partial_rotary_factor", 1.0)
        rotary = (
            head if self.mistake == "head size for rotary size" or rope["rope_type"] == "proportional" else head * share
        )
        base = 10000.0 if self.mistake == "base lost" else rope["rope_theta"]
        return rope, head, int(rotary), base, config["max_position_embeddings"]

    def ramp(self, rope, dims, base, original, plain):
        fast, slow = rope.get("beta_fast", 32.0), rope.get("beta_slow", 1.0)
        if self.mistake == "betas swapped":
            fast, slow = slow, fast
        if self.mistake == "ramp by turns":
            return 1 - np.clip((original * plain / (2 * math.pi) - slow) / (fast - slow), 0, 1)
        low, high = (dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
        if rope.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dims - 1)
        ramp = np.clip((np.arange(dims // 2) - low) / (high - low or 0.001), 0, 1)
        return 1 - ramp if self.mistake == "ramp inverted" else ramp

    def inv_freq(self, config):
        rope, _, dims, base, limit = self.read(config)
        kind, factor = rope["rope_type"], rope.get("factor", 1.0)
        plain = base ** (-np.arange(0, dims, 2) / dims)
        if self.mistake == "scaling ignored" or kind == "default":
            return plain, 1.0
        if self.mistake == "factor squared":
            factor = factor**2
        original = rope.get("original_max_position_embeddings", limit)
        if self.mistake == "original and maximum length exchanged":
            original, limit = limit, original
        if kind == "proportional":
            return np.where(np.arange(dims // 2) < int(rope["partial_rotary_factor"] * dims // 2), plain, 0.0), 1.0
        if self.mistake == "factor on the wrong side" and kind == "linear":
            return plain * factor, 1.0
        if kind == "linear":
            return plain / factor, 1.0
        if kind == "llama3":
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            smooth = np.clip((original * plain / (2 * math.pi) - low) / (high - low), 0, 1)
            smooth = 1 - smooth if self.mistake == "ramp inverted" else smooth
            return plain / factor * (1 - smooth) + plain * smooth, 1.0
        ramp = self.ramp(rope, dims, base, original, plain)
        return plain / factor * ramp + plain * (1 - ramp), self.attention(rope)

    @staticmethod
    def attention(rope):
        def mscale(weight=1.0):
            return 0.1 * weight * math.log(rope["factor"]) + 1.0

        if rope.get("attention_factor") is not None:
            return rope["attention_factor"]
        if rope.get("mscale") and rope.get("mscale_all_dim"):
            return mscale(rope["mscale"]) / mscale(rope["mscale_all_dim"])
        return mscale()

    def cos_sin(self, config, positions):
        inv_freq, factor = self.inv_freq(config)
        positions = np.asarray(positions, float)
        if self.mistake == "float32 positions":
            positions = positions.astype(np.float32).astype(float)
        angles = positions[:, None] * inv_freq
        if self.mistake == "bfloat16 angles":
            step = 2.0 ** (np.frexp(angles)[1] - 8)
            angles = np.round(angles / step) * step
        if self.mistake == "attention factor squared":
            factor = factor**2
        return np.cos(angles) * factor, np.sin(angles) * factor

    def rotate(self, config, q, k, positions):
        cos, sin = self.cos_sin(config, positions)
        if self.mistake == "p-RoPE's pairing":
            moving = self.inv_freq(config)[0] > 0
            cos, sin = cos[:, moving], sin[:, moving]
        pairs = cos.shape[1]
        adjacent = config["model_type"] in ("deepseek_v3", "cohere", "glm4")
        if self.mistake == "pairing":
            adjacent = not adjacent
        first, second = (
            (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if adjacent else (slice(pairs), slice(pairs, 2 * pairs))
        )
        if self.mistake == check_rope.ACROSS:
            second = slice(q.shape[1] // 2, q.shape[1] // 2 + pairs)
        turned = []
        for vectors in (q, k):
            out = vectors.copy()
            out[:, first] = vectors[:, first] * cos - vectors[:, second] * sin
            out[:, second] = vectors[:, second] * cos + vectors[:, first] * sin
            turned.append(out)
        return turned

    def softmax_scale(self, config):
        rope, multiplier = config["rope_parameters"], 1.0
        head = config.get("head_dim", config.get("qk_rope_head_dim"))
        size = head + (0 if self.mistake == "rotary size for the size of q" else config.get("qk_nope_head_dim", 0))
        if config["model_type"] == "deepseek_v3" and "mscale_all_dim" in rope:
            multiplier = (0.1 * rope["mscale_all_dim"] * math.log(rope["factor"]) + 1.0) ** 2
        power = {"ignored": 0.0, "not squared": 0.5, "squared": 2.0}.get(
            self.mistake.removeprefix("softmax multiplier ")
        )
        return (multiplier if power is None else multiplier**power) / math.sqrt(size)


FORMULAS = ("plain", "adjacent", "partial", "linear", "llama3", "yarn", "mla", "proportional")
# {mistake: (functions that show it, cases that it changes)}
PLANTED = {
    "head size for rotary size": (("inv_freq", "cos_sin", "rotate"), ("partial-0.25", "partial-0.5", "yarn-partial")),
    "pairing": (("rotate",), ("plain-128", "adjacent-64", "yarn-4", "adjacent-partial")),
    "betas swapped": (("inv_freq", "cos_sin", "rotate"), ("yarn-4", "yarn-betas", "mla-40-1")),
    "scaling ignored": (("inv_freq", "cos_sin", "rotate"), ("linear", "llama3", "yarn-own", "mla")),
    "factor on the wrong side": (("inv_freq", "cos_sin", "rotate"), ("linear-2", "linear-8")),
    "factor squared": (("inv_freq", "cos_sin", "rotate"), ("linear", "llama3", "yarn-own")),
    "attention factor squared": (("cos_sin", "rotate"), ("yarn-4", "yarn-mscales")),
    "p-RoPE's pairing": (("rotate",), ("proportional",)),
    "float32 positions": (("cos_sin", "rotate"), ("plain-128", "yarn-4", "partial-0.5")),
    "bfloat16 angles": (("cos_sin", "rotate"), ("plain-128", "llama3", "yarn-4")),
    "original and maximum length exchanged": (
        ("inv_freq", "cos_sin", "rotate"),
        ("llama3-128-8-8192", "yarn-4", "mla"),
    ),
    "ramp by turns": (("inv_freq", "cos_sin", "rotate"), ("yarn-4", "mla-40-1")),
    "ramp inverted": (("inv_freq", "cos_sin", "rotate"), ("llama3", "yarn-4", "mla")),
    check_rope.ACROSS: (("rotate",), ("partial-0.25", "partial-0.5", "yarn-partial")),
    "softmax multiplier ignored": (("softmax_scale",), ("mla",)),
    "softmax multiplier not squared": (("softmax_scale",), ("mla",)),
    "softmax multiplier squared": (("softmax_scale",), ("mla",)),
    "rotary size for the size of q": (("softmax_scale",), ("mla", "adjacent-64")),
    "base lost": (("inv_freq", "cos_sin", "rotate"), ("plain-base", "llama3", "yarn-4")),
}


@pytest.mark.parametrize(("mistake", "name"), [(one, name) for one, (names, _) in PLANTED.items() for name in names])
def test_a_planted_mistake_is_named_in_every_case(cases, mistake, name):
    for case in some(cases, *PLANTED[mistake][1]):
        findings = check_rope.check({name: getattr(Engine(mistake), name)}, [case])
        assert [one.mistake for one in findings] == [mistake], [case["id"], *map(str, findings)]
        assert findings[0].is_wrong == (mistake != "float32 positions")


def test_a_right_engine_has_no_findings(cases):
    engine = Engine()
    functions = {name: getattr(engine, name) for name in check_rope.FUNCTIONS if name != "turn_back"}
    assert not check_rope.check(functions, some(cases, *FORMULAS))


def test_frequencies_of_no_known_mistake_are_wrong(cases):
    (case,) = some(cases, "yarn-4")
    (finding,) = check_rope.check({"inv_freq": lambda config: np.linspace(1, 0.1, 64)}, [case])
    assert (finding.is_wrong, finding.mistake) == (True, "")
    assert "pair 63 is 0.1, not" in finding.detail


def test_our_own_functions_pass(cases):
    def inv_freq(config, length):
        spec = next(iter(from_config(config).values()))
        return spec.inv_freq(length), spec.attention_factor(length)

    def rotate(config, q, k, positions):
        spec = next(iter(from_config(config).values()))
        length = int(max(positions)) + 1
        more = {"pairing": spec.pairing, "attention_factor": spec.attention_factor(length)}
        turned = rotate_qk(q[:, None], k[:, None], positions, spec.inv_freq(length), **more)
        return [one[:, 0] for one in turned]

    assert not check_rope.check({"inv_freq": inv_freq, "rotate": rotate}, cases)


def transformers_module(config):
    """Return the rotary module of the model's class in transformers, its functions, and whether pairs are adjacent."""
    transformers = pytest.importorskip("transformers")
    built = transformers.AutoConfig.for_model(**config)
    model = importlib.import_module(f"transformers.models.{config['model_type']}.modeling_{config['model_type']}")
    rotary = next(kind for name, kind in vars(model).items() if name.endswith("RotaryEmbedding"))
    return rotary(built), model


def test_the_functions_of_transformers_pass(cases):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")

    def cos_sin(config, positions):
        rotary, _ = transformers_module(config)
        return [one[0].numpy() for one in rotary(torch.zeros(1), torch.tensor(np.asarray(positions))[None])]

    def rotate(config, q, k, positions):
        rotary, model = transformers_module(config)
        cos, sin = rotary(torch.zeros(1), torch.tensor(np.asarray(positions))[None])
        turn = getattr(model, "apply_rotary_pos_emb_interleave", model.apply_rotary_pos_emb)
        given = [torch.tensor(one, dtype=torch.float32)[None, None] for one in (q, k)]
        size = config.get("qk_rope_head_dim", config.get("head_dim"))
        return [one[0, 0].numpy() for one in turn(*(one[..., :size] for one in given), cos, sin)]

    def inv_freq(config):
        rotary, _ = transformers_module(config)
        return rotary.inv_freq.numpy(), rotary.attention_scaling

    def softmax_scale(config):
        built = transformers.AutoConfig.for_model(**config)
        _, model = transformers_module(config)
        attention = next(kind for name, kind in vars(model).items() if name.endswith("Attention"))
        with torch.device("meta"):
            return attention(built, layer_idx=0).scaling

    functions = {"inv_freq": inv_freq, "cos_sin": cos_sin, "rotate": rotate, "softmax_scale": softmax_scale}
    findings = check_rope.check(functions, cases)
    assert not [str(one) for one in findings if one.is_wrong]
    # Its positions are float32, which the kit remarks.
    assert {one.mistake for one in findings} == {"float32 positions"}


def test_what_flash_attention_rotated_passes(cases):
    by_id = {case["id"]: case for case in cases}
    assert len(GOLDEN["rows"]) >= 4
    for row in GOLDEN["rows"]:
        findings = check_rope.check_rotate(by_id[row["id"]], row["q"], row["k"])
        assert [one.mistake for one in findings] in ([], ["float32 positions"])


def test_the_file_runs_alone_with_numpy(kit, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def inv_freq(config):\n"
        "    rope, size = config['rope_parameters'], config.get('head_dim', config.get('qk_rope_head_dim'))\n"
        "    return rope['rope_theta'] ** (-np.arange(0, size, 2) / size)\n"
    )
    run = [sys.executable, str(kit / "check_rope.py"), "mine"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "WRONG linear-2 inv_freq: scaling ignored (pair 0 is 1, not 0.5)" in done.stdout
    assert "WRONG partial-0.25 inv_freq: head size for rotary size" in done.stdout
    assert "plain-128" not in done.stdout


def test_the_binary_has_the_same_values_as_the_json(kit, cases):
    values, index = (kit / "values.bin").read_bytes(), json.loads((kit / "values.json").read_text())
    assert len(index["cases"]) == len(check_rope.load_cases(kit)) > len(cases) >= 40
    for case in cases:
        entry = index["cases"][case["id"]]
        for key in ("inv_freq", "angles", "q", "rotated_k"):
            place = entry[key]
            count = math.prod(place["shape"])
            found = np.frombuffer(values, "<f8", count, place["offset"]).reshape(place["shape"])
            np.testing.assert_array_equal(found, case[key])


def test_multiplier_of_deepseek_is_in_the_scale(cases):
    """By the formula of its paper's code: (0.1 · mscale_all_dim · ln factor + 1)², over √192."""
    by_id = {case["id"]: case["softmax_scale"] * math.sqrt(192) for case in cases}
    assert by_id["mla-40-0.707"] == pytest.approx(1.5896, abs=5e-5)
    assert by_id["mla-40-1"] == pytest.approx(1.8739, abs=5e-5)
