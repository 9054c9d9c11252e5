"""Ask the model files of mlx-lm 0.32.2 for the rotary module of synthetic configs: writes tests/goldens/mlx.json.

Run from the root of the repository where mlx 0.32.4 (the CPU wheel) is installed and mlx-lm is on the path:
    python tests/goldens/make_mlx.py
mlx-lm's package initialiser wants transformers, which is not needed here, so it is stepped over. `error` is what the
model file raises. Frequencies are the angles of unit vectors turned at offset 1; a dynamic module's come from its base.
"""

import ast
import dataclasses
import importlib
import importlib.util
import inspect
import itertools
import json
import math
import sys
import types
from pathlib import Path

import mlx.core as mx
import numpy as np

PATH = Path(__file__).with_name("mlx.json")
SHORT = [1.0 + 0.01 * i for i in range(32)]
LONG = [1.0 + i for i in range(32)]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
LISTS = {"short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 8192}
SCALINGS = (
    None,
    {"rope_type": "linear", "factor": 3.0},
    {"type": "linear", "factor": 3.0},
    {"type": "dynamic", "factor": 3.0},
    YARN,
    {"rope_type": "yarn", "factor": 4.0},
    {**YARN, "mscale": 1.5},
    {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    {**YARN, "truncate": False, "attention_factor": 1.0},
    {**YARN, "beta_fast": 16, "beta_slow": 2},
    {"rope_type": "llama3", "factor": 8.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
    {"type": "longrope", **LISTS},
    {"type": "su", **LISTS},
    {"rope_type": "proportional", "factor": 2.0},
    {"rope_type": "foo", "factor": 2.0},
)
MODELS = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "olmo2", "internlm2", "phi3", "stablelm", "gpt_neox", "glm4")
# More model files, each with few types of scaling: {model type: its own keys, None for one to leave out}.
FEW = (None, *({"type": one["rope_type"], **one} for one in ({"rope_type": "linear", "factor": 2.5}, YARN)))
PLAIN: dict = {}
SHARE = {"partial_rotary_factor": 0.5}
HEAD = {"head_dim": 64}
HALF = {**HEAD, **SHARE}
MORE = {
    **dict.fromkeys(("qwen3_moe", "gemma", "cohere2", "seed_oss", "ernie4_5", "apertus", "hunyuan_v1_dense"), HEAD),
    **dict.fromkeys(("bailing_moe", "internlm3", "mimo", "helium", "dots1", "bitnet", "falcon_h1"), HEAD),
    **dict.fromkeys(("qwen3_next", "glm", "glm4_moe", "bailing_moe_linear"), HALF),
    **dict.fromkeys(("qwen2_moe", "cohere", "olmoe", "starcoder2", "phimoe", "granite", "granitemoe", "lfm2"), PLAIN),
    **dict.fromkeys(("ernie4_5_moe", "deepseek", "minicpm"), PLAIN),
    **dict.fromkeys(("phi", "nemotron"), SHARE),
    "minimax_m2": {**HEAD, "rotary_dim": 32},
    "phi3small": {"rope_embedding_base": 1000000, "rope_theta": None},
    "qwen": {"kv_channels": 64, "rope_theta": None},
}
# These have a key that their file asks for even where it is null.
NULLS = {"glm4_moe": {"rope_scaling": None}}
# What is asked of a config: a model file that has no default for it raises TypeError.
WANTED = (
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "partial_rotary_factor",
    "head_dim",
    "rotary_dim",
    "text_config",
)
ROPE_KEYS = ("rope_theta", "rope_scaling", "partial_rotary_factor", "rotary_emb_base")
# As transformers 5 saves a model: no old key at the top.
NEW = {"rope_type": "default", "rope_theta": 50000.0}
SAVED = (*MODELS[:8], "stablelm", "gpt_neox", "glm4", "olmo3", "gemma2", "deepseek_v3")
SAVED += tuple(kind for kind in MORE if kind not in ("phi", "nemotron", "phi3small", "qwen", "minimax_m2", "lfm2"))
# What the model files want beside the keys of interest.
REST = {
    "num_hidden_layers": 1,
    "intermediate_size": 64,
    "vocab_size": 32,
    "rms_norm_eps": 1e-5,
    "layer_norm_eps": 1e-5,
    "num_key_value_heads": 16,
    "attention_bias": False,
    "bias": False,
    "tie_word_embeddings": True,
    "use_qkv_bias": False,
    "use_parallel_residual": True,
    **{"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    **{"decoder_sparse_step": 1, "norm_topk_prob": False, "mlp_only_layers": [], "shared_expert_intermediate_size": 32},
    **{"router_aux_loss_coef": 0.0, "logit_scale": 1.0, "layer_norm_bias": False, "use_qk_norm": False},
    **{"attention_multiplier": 1.0, "embedding_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0},
    **{"mlp_bias": False, "norm_epsilon": 1e-5, "activation_function": "silu", "layer_norm_epsilon": 1e-5},
    **{"n_routed_experts": None, "routed_scaling_factor": 1.0, "first_k_dense_replace": 9, "sliding_window": 4096},
    **{"layer_types": ["full_attention"] * 2},
}


FILES = {"mistral": "llama", "minimax_m2": "minimax"}
# {model type: (file and class of its arguments, file of its attention)}, where a file uses another one's layers.
PARTS = {
    "glm_moe_dsa": ("glm_moe_dsa", "ModelArgs", "deepseek_v32"),
    **dict.fromkeys(("qwen3_5_moe_text", "qwen3_5_text"), ("qwen3_5", "TextModelArgs", "qwen3_5")),
    "minimax_m3_vl_text": ("minimax_m3_vl", "TextArgs", "minimax_m3_vl"),
}
# Keys as the published files of DeepSeek V3.2, GLM-5, MiMo V2 Flash, MiniMax M3 and Qwen3.5 have them.
LATENT = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "kv_lora_rank": 64, "q_lora_rank": 32}
INDEX = {"index_head_dim": 128, "index_n_heads": 4, "index_topk": 16}
SWA = {"swa_rope_theta": 10000.0, "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1]}
SWA |= {"swa_num_attention_heads": 16, "swa_num_key_value_heads": 16, "sliding_window_size": 128}
QWEN = {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}
M3 = {**HEAD, "partial_rotary_factor": 0.5, "rotary_dim": 32, "rope_theta": 5e6}
PUBLISHED = {
    "deepseek_v32": {**LATENT, **INDEX, "rope_theta": 10000.0},
    "glm_moe_dsa": {**LATENT, **INDEX, "rope_interleave": True, "rope_parameters": {"rope_theta": 1000000.0}},
    "mimo_v2_flash": {"head_dim": 192, "v_head_dim": 128, "partial_rotary_factor": 0.334, "rope_theta": 5e6, **SWA},
    "minimax_m3_vl_text": M3,
    "qwen3_5_moe_text": {"head_dim": 256, "rope_parameters": QWEN},
    "qwen3_5_text": {"head_dim": 256, "rope_parameters": QWEN},
}
# The same with old keys, or with the new ones where the published file has old ones.
OTHER_KEYS = {
    "minimax_m3_vl_text": {**M3, "rope_parameters": {"rope_theta": 4e6}},
    "qwen3_5_moe_text": {"head_dim": 256, "partial_rotary_factor": 0.25, "rope_theta": 1e7},
    "qwen3_5_text": {"head_dim": 256, "partial_rotary_factor": 0.25, "rope_theta": 1e7},
}


# Whole models, as load() of mlx-lm builds them from a config: what a wrapper and a text part alone give, and
# what a file has to name.
TEN = {"hidden_size": 640, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 128, "num_hidden_layers": 4}
TEN |= {"max_position_embeddings": 131072, "rope_theta": 500000.0}
LLAMA4 = {**TEN, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192, "intermediate_size_mlp": 64}
LLAMA4 |= {"no_rope_layers": [1, 1, 1, 0], "use_qk_norm": True, "num_local_experts": 2}
LLAMA4 |= {"num_experts_per_tok": 1}
LLAMA4_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
LLAMA3 = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0}
LLAMA3 |= {"original_max_position_embeddings": 8192}
DEEPSEEK = {**LATENT, **TEN, "n_routed_experts": None, "moe_layer_freq": 1}
PARAMETERS = {**LLAMA4_YARN, "rope_theta": 500000.0, "llama_4_scaling_beta": 0.1}
QWEN_VL = {"model_type": "qwen2", **TEN}
WHOLE = (
    *({"model_type": "llama4_text", **LLAMA4, "rope_scaling": one} for one in (None, LLAMA4_YARN, LLAMA3)),
    *(
        {"model_type": "llama4", "text_config": {"model_type": "llama4_text", **LLAMA4, "rope_scaling": one}}
        for one in (None, LLAMA4_YARN, LLAMA3)
    ),
    *(
        {"model_type": "deepseek_v2", **DEEPSEEK, "rope_scaling": one}
        for one in (None, LLAMA4_YARN, {"rope_type": "linear", "factor": 2.0}, {"rope_type": "yarn"})
    ),
    {"model_type": "gpt_oss", **TEN, "rope_theta": 150000.0},
    {"model_type": "falcon_h1", **{key: value for key, value in TEN.items() if key != "head_dim"}},
    *({"model_type": kind, **TEN} for kind in ("qwen3", "gemma", "gemma2", "seed_oss")),
    *(
        {"model_type": kind, **{key: value for key, value in TEN.items() if key != "head_dim"}}
        for kind in ("qwen3", "gemma", "gemma2", "seed_oss", "helium")
    ),
    {"model_type": "ministral3", **TEN, "rope_scaling": LLAMA4_YARN},
    {"model_type": "ministral3", **TEN, "rope_parameters": {**LLAMA4_YARN, "rope_theta": 500000.0}},
    {"model_type": "ministral3", **TEN, "rope_parameters": PARAMETERS},
    {"model_type": "glm_moe_dsa", **DEEPSEEK, **INDEX},
    {"model_type": "internvl", "text_config": QWEN_VL},
    {"model_type": "llava_onevision", "text_config": QWEN_VL},
)


def cases():
    """(config, length) of every row."""
    for kind, scaling, head_dim in itertools.product(MODELS, SCALINGS, (64, 128)):
        config = {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16, "head_dim": head_dim}
        config |= {"max_position_embeddings": 32768, "rope_theta": 10000.0}
        if kind in ("stablelm", "glm4", "llama"):
            config["partial_rotary_factor"] = 0.5
        if kind == "gpt_neox":
            config |= {"rotary_pct": 0.25, "rotary_emb_base": 10000}
        if scaling is not None:
            config["rope_scaling"] = scaling
        yield config, 70000 if scaling and "dynamic" in scaling.values() else None
    for (kind, keys), scaling in itertools.product(MORE.items(), FEW):
        config = {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16}
        config |= {"max_position_embeddings": 32768, "rope_theta": 50000.0, **keys}
        yield (
            {key: value for key, value in config.items() if value is not None}
            | (NULLS.get(kind, {}) if scaling is None else {"rope_scaling": scaling}),
            None,
        )
    for kind in SAVED:
        config = {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16, "head_dim": 64}
        if kind in ("deepseek_v3",):
            config |= {"qk_rope_head_dim": 64, "kv_lora_rank": 64}
        yield config | {"max_position_embeddings": 32768, "rope_parameters": NEW}, None
    for (kind, keys), scaling in itertools.product((*PUBLISHED.items(), *OTHER_KEYS.items()), (None, YARN)):
        if (kind, scaling) == ("mimo_v2_flash", YARN):
            continue  # transformers refuses a scaling that names no layer type
        config = {"model_type": kind, "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 16}
        config |= {"max_position_embeddings": 32768, **keys}
        if "rope_parameters" in keys:
            config["rope_parameters"] = {**keys["rope_parameters"], **(scaling or {"rope_type": "default"})}
        elif scaling is not None:
            config["rope_scaling"] = scaling
        yield config, None


def module_of(name):
    """A module of mlx-lm without the package initialiser."""
    if "mlx_lm" not in sys.modules:
        root = Path(importlib.util.find_spec("mlx_lm").submodule_search_locations[0])
        for package, folder in (("mlx_lm", root), ("mlx_lm.models", root / "models")):
            sys.modules[package] = types.ModuleType(package)
            sys.modules[package].__path__ = [str(folder)]
    return importlib.import_module(f"mlx_lm.models.{name}")


def ask(config, length):
    """inv_freq and the factor on cos and sin."""
    kind = config["model_type"]
    file, name, layers = PARTS.get(kind, (FILES.get(kind, kind), "ModelArgs", FILES.get(kind, kind)))
    module, arguments_class = module_of(layers), getattr(module_of(file), name)
    fields = dataclasses.fields(arguments_class)
    wanted = [
        one.name
        for one in fields
        if {one.default, one.default_factory} == {dataclasses.MISSING} and one.name not in ROPE_KEYS
    ]
    given = {**dict.fromkeys(wanted, 1), **REST, **json.loads(json.dumps(config))}
    arguments = arguments_class.from_dict(given)
    attention = next(
        value for name, value in vars(module).items() if name.endswith("Attention") and isinstance(value, type)
    )
    layered = len(inspect.signature(attention.__init__).parameters) > 2
    made = attention(arguments, 0) if layered else attention(arguments)
    # Modules are dicts: an empty one is false.
    return measure(made.rotary_emb if getattr(made, "rope", None) is None else made.rope, length)


def ask_whole(config):
    """inv_freq and the factor on cos and sin of the first layer that rotates, in the model that load() builds."""
    base = module_of("base").BaseModelArgs
    tree = ast.parse((Path(sys.modules["mlx_lm"].__path__[0]) / "utils.py").read_text())
    renamed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODEL_REMAPPING"
    )
    kind = renamed.get(config["model_type"], config["model_type"])
    try:
        module = module_of(kind)
    except ImportError:
        raise ValueError(f"Model type {kind} not supported.") from None
    plain = base.from_dict.__func__

    def from_dict(kind, given):
        """As from_dict, with what does not concern RoPE filled in."""
        missing = (one for one in dataclasses.fields(kind) if one.default_factory is dataclasses.MISSING is one.default)
        rest = {one.name: REST.get(one.name, 1) for one in missing if one.name not in WANTED}
        return plain(kind, {**rest, **given})

    base.from_dict = classmethod(from_dict)
    try:
        model = module.Model(module.ModelArgs.from_dict(json.loads(json.dumps(config))))
    finally:
        base.from_dict = classmethod(plain)
    ropes = (getattr(one, name, None) for _, one in model.named_modules() for name in ("rope", "rotary_emb"))
    found = [one for one in ropes if any(hasattr(one, name) for name in ("dims", "dim", "_freqs"))]
    return measure(found[-1], None)


def measure(rope, length):
    """inv_freq and the factor on cos and sin of a rotary module."""
    if type(rope).__name__ == "DynamicNTKScalingRoPE":
        longest = max(length, rope.max_position_embeddings)
        growth = rope.factor * longest / rope.max_position_embeddings - (rope.factor - 1)
        base = rope.base * growth ** (rope.dims / (rope.dims - 2))
        return (base ** (-np.arange(0, rope.dims, 2) / rope.dims)).tolist(), 1.0
    # DeepSeek V2's own class, which pairs neighbours, keeps its frequencies alone.
    own = not hasattr(rope, "dim") and not hasattr(rope, "dims")
    dims = 2 * len(rope._freqs) if own else rope.dim if hasattr(rope, "dim") else rope.dims
    angles, sizes = [], []
    for pair in range(dims // 2):
        is_traditional = own or getattr(rope, "traditional", False)
        first, second = (2 * pair, 2 * pair + 1) if is_traditional else (pair, pair + dims // 2)
        vector = np.zeros((1, 1, 1, dims if own else max(dims, 128)), np.float32)
        vector[..., first] = 1
        turned = np.array(rope(mx.array(vector), offset=1))[0, 0, 0]
        angles.append(math.atan2(turned[second], turned[first]))
        sizes.append(math.hypot(turned[first], turned[second]))
    return angles, sizes[0]


def main():
    """Write every row."""
    rows = []
    asked = [(config, length, lambda config=config, length=length: ask(config, length)) for config, length in cases()]
    asked += [(config, None, lambda config=config: ask_whole(config)) for config in WHOLE]
    for config, length, ask_one in asked:
        row = {"config": config, "length": length}
        try:
            found, attention = ask_one()
            row |= {"inv_freq": [float(f"{value:.7g}") for value in found], "attention_factor": round(attention, 8)}
        except Exception as error:
            row |= {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
        rows.append(row)
    about = "Made by make_mlx.py from the model files of mlx-lm 0.32.2 on mlx 0.32.4 for CPU, float32."
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
