"""Write `runtimes.*.file` into the records: which file of a runtime reads a type, by its own registry.

Run from the root of the repository with transformers 5.24.0 installed, and the unpacked wheels of vLLM, SGLang and
mlx-lm and the source of llama.cpp as arguments:
    python tests/goldens/make_served.py vllm-0.33.0 sglang-0.5.23 mlx_lm-0.32.2 llama.cpp \\
        vllm-0.10.2 vllm-0.8.5 vllm-0.6.6 sglang-0.4.6
Nothing of the runtimes is run, their files are parsed. "transformers" is the runtime's way to run a model by the code
of transformers; a model type that is not named has no file there.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import transformers.models.auto.modeling_auto as auto
from records import read_records, write_record

from rope_viz.models.no_rope_types import letters_of

MAPPINGS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_MAPPING_NAMES",
)
GENERATING = MAPPINGS[:3]
# Architectures of types whose code travels with the model, as their config.json names them.
REMOTE = {
    "chatglm": ("ChatGLMModel", "ChatGLMForConditionalGeneration"),
    "internlm2": ("InternLM2ForCausalLM",),
    "kimi_k2": ("DeepseekV3ForCausalLM",),
    "deepseek": ("DeepseekForCausalLM",),
    "deepseek_vl_v2": ("DeepseekVLV2ForCausalLM",),
    "minimax_text_01": ("MiniMaxText01ForCausalLM",),
    "minimax_m1": ("MiniMaxM1ForCausalLM",),
    "baichuan": ("BaichuanForCausalLM", "BaiChuanForCausalLM"),
    "internlm": ("InternLMForCausalLM",),
    "qwen": ("QWenLMHeadModel",),
    "xverse": ("XverseForCausalLM",),
    "telechat": ("TelechatForCausalLM", "TeleChat2ForCausalLM"),
    "telechat3": ("TeleChat3ForCausalLM",),
    "step3_text": ("Step3TextForCausalLM",),
    "step3_vl": ("Step3VLForConditionalGeneration",),
    "step1": ("Step1ForCausalLM",),
    "bailing_moe": ("BailingMoeForCausalLM",),
    "bailing_moe_v2": ("BailingMoeV2ForCausalLM",),
    "bailing_moe_linear": ("BailingMoeLinearV2ForCausalLM", "BailingMoeV2_5ForCausalLM"),
    "mimo": ("MiMoForCausalLM",),
    "exaone": ("ExaoneForCausalLM",),
    "grok-1": ("Grok1ModelForCausalLM", "Grok1ForCausalLM"),
    "arctic": ("ArcticForCausalLM",),
    "orion": ("OrionForCausalLM",),
    "minicpm": ("MiniCPMForCausalLM",),
    "aquila": ("AquilaForCausalLM", "AquilaModel"),
    "hunyuan": ("HunYuanForCausalLM",),
    "phi-msft": ("PhiForCausalLM",),
    "minimax_vl_01": ("MiniMaxVL01ForConditionalGeneration",),
    "kimi_vl": ("KimiVLForConditionalGeneration",),
    "phi3small": ("Phi3SmallForCausalLM",),
    "openelm": ("OpenELMForCausalLM",),
    "plamo": ("PlamoForCausalLM",),
    "plamo2": ("Plamo2ForCausalLM",),
    "plamo3": ("Plamo3ForCausalLM",),
    "codeshell": ("CodeShellForCausalLM",),
    "nemotron-nas": ("DeciLMForCausalLM",),
    "sarvam_mla": ("SarvamMLAForCausalLM",),
    "sarvam_moe": ("SarvamMoEForCausalLM",),
}
# Architectures that published files name, where the class of transformers has another name.
PUBLISHED = {
    "bailing_hybrid": ("BailingMoeV3ForCausalLM",),
    "deepseek_ocr2": ("DeepseekOCR2ForCausalLM",),
    "unlimited_ocr": ("UnlimitedOCRForCausalLM",),
}
# Both servers ask for an earlier transformers than the one with these types, whose code they cannot use.
TOO_NEW = "5.24.0"


def architectures(kind: str, table: dict, mappings=MAPPINGS) -> list[str]:
    """The classes of transformers that may stand under `architectures` for this type, and for what wraps it."""
    wrappers = [name for name, facts in table.items() if facts.get("text", {}).get("type") == kind]
    named = [PUBLISHED.get(name, ()) for name in (kind, *wrappers)]
    found = [REMOTE.get(kind, ()), *named, *(mapped_classes(name, mappings) for name in (kind, *wrappers))]
    return list(dict.fromkeys(one for names in found for one in names))


def own_classes(kind: str) -> list[str]:
    """The classes that may stand under `architectures` for this type itself."""
    return [*REMOTE.get(kind, ()), *PUBLISHED.get(kind, ()), *mapped_classes(kind, MAPPINGS)]


def mapped_classes(kind: str, mappings: tuple[str, ...]) -> list[str]:
    """The classes of transformers that these tables name for a type."""
    found: list[str] = []
    for mapping in mappings:
        named = getattr(auto, mapping, {}).get(kind) or ()
        found += [named] if isinstance(named, str) else named
    return found


def by_letters(registry: dict[str, str]) -> dict[str, str]:
    """A registry under the letters of its names: published files write PhiMoEForCausalLM, transformers PhimoeFor…."""
    return {letters_of(name): module for name, module in registry.items()}


def vllm(root: Path) -> dict[str, str]:
    """{architecture: module} of the registry."""
    text = (root / "vllm" / "model_executor" / "models" / "registry.py").read_text()
    pairs = re.findall(r'"(\w+)":\s*\(\s*"([\w.]+)",\s*"\w+",?\s*\)', text)
    return {name: "transformers" if module == "transformers" else module for name, module in reversed(pairs)}


def sglang(root: Path) -> dict[str, str]:
    """{architecture: module} from the EntryClass of every model file."""
    found = {}
    for path in sorted((root / "sglang" / "srt" / "models").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8-sig")).body:
            if isinstance(node, ast.Assign) and any(getattr(part, "id", "") == "EntryClass" for part in node.targets):
                names = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
                found |= {name.id: path.stem for name in names if isinstance(name, ast.Name)}
    return found


def llamacpp(root: Path) -> dict[str, str]:
    """{architecture: module} from the decorators of the conversion classes."""
    found = {}
    for path in sorted((root / "conversion").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for call in getattr(node, "decorator_list", []) if isinstance(node, ast.ClassDef) else []:
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "register":
                    text = not any("Mmproj" in ast.unparse(base) for base in node.bases)
                    names = [part.value for part in call.args if isinstance(part, ast.Constant)]
                    found |= {name: path.stem for name in names if text or name not in found}
    return found


def mlx(root: Path, table: dict, kinds: list[str]) -> dict[str, str]:
    """{model type: module}: a file of the type's own name, of the name it is mapped to, or of what wraps it."""
    models = root / "mlx_lm" / "models"
    tree = ast.parse((root / "mlx_lm" / "utils.py").read_text())
    renamed, by_class = (
        ast.literal_eval(node.value)
        for name in ("MODEL_REMAPPING", "MODEL_ARCHITECTURE_REMAPPING")
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    )
    found = {}
    for kind in kinds:
        wrappers = [name for name, facts in table.items() if facts.get("text", {}).get("type") == kind]
        named = [by_class[kind, one] for one in PUBLISHED.get(kind, ()) if (kind, one) in by_class]
        named += [renamed.get(name, name) for name in (kind, *wrappers)]
        module = next((name for name in named if (models / f"{name}.py").exists()), None)
        if module:
            found[kind] = module
    return found


def main(folders: list[str]) -> None:
    roots = [Path(folder) for folder in folders]
    table = read_records()
    kinds = [kind for kind, facts in table.items() if "text" not in facts and not facts.get("not_text")]
    served: dict[str, dict[str, str]] = {}
    for name, names in (("vllm", vllm(roots[0])), ("sglang", sglang(roots[1])), ("llama.cpp", llamacpp(roots[3]))):
        registry = by_letters(names)
        served[name] = {}
        for kind in kinds:
            is_too_new = table[kind].get("since") == TOO_NEW
            names = REMOTE[kind] if is_too_new and kind in REMOTE else architectures(kind, table)
            module = next((registry[one] for one in map(letters_of, names) if one in registry), None)
            if module is None and name != "llama.cpp" and kind not in REMOTE and not is_too_new:
                module = "transformers" if architectures(kind, table, GENERATING) else None
            if module is not None:
                served[name][kind] = module
    for root in roots[4:]:
        name, version = root.name.split("-")
        registry = by_letters({"vllm": vllm, "sglang": sglang}[name](root))
        found = {
            kind: [registry[one] for one in map(letters_of, architectures(kind, table)) if one in registry]
            for kind in kinds
        }
        served[f"{name} {version}"] = {kind: modules[0] for kind, modules in found.items() if modules}
    served["mlx-lm"] = mlx(roots[2], table, kinds)
    for kind, record in table.items():
        runtimes = record.setdefault("runtimes", {})
        for name, found in served.items():
            facts = {key: value for key, value in runtimes.get(name, {}).items() if key != "file"}
            runtimes[name] = {"file": found[kind], **facts} if kind in found else facts
        record["runtimes"] = {name: facts for name, facts in runtimes.items() if facts}
        write_record(kind, record)
    print({name: (len(found), sum(m != "transformers" for m in found.values())) for name, found in served.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
