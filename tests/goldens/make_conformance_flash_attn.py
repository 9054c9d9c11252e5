"""Write conformance_flash_attn.json: what `apply_rotary_emb_torch` of flash-attention makes of some cases of the kit.

    python tests/goldens/make_conformance_flash_attn.py CHECKOUT      # of Dao-AILab/flash-attention

The function is taken out of flash_attn/layers/rotary.py, because importing the package needs a GPU build.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from einops import rearrange, repeat

from rope_viz.advice.verify.conformance import build_case, list_configs

CASES = ("plain-128", "partial-0.5", "adjacent-128", "adjacent-partial-0.5", "yarn-4", "llama3-64-32-8192-4")
HERE = Path(__file__).parent


def load_function(checkout):
    """Return the function, and the commit that it is from."""

    def git(*words):
        return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True, text=True).stdout

    tree = ast.parse(git("show", "HEAD:flash_attn/layers/rotary.py"))
    wanted = [node for node in tree.body if getattr(node, "name", "") in ("rotate_half", "apply_rotary_emb_torch")]
    names = {"torch": torch, "rearrange": rearrange, "repeat": repeat}
    exec(compile(ast.Module(wanted, []), "rotary.py", "exec"), names)
    return names["apply_rotary_emb_torch"], git("rev-parse", "HEAD").strip()


def main():
    turn, commit = load_function(sys.argv[1])
    rows = []
    for name in CASES:
        case = build_case(name, list_configs()[name])
        angles = torch.tensor(case["positions"], dtype=torch.float32)[:, None] * torch.tensor(case["inv_freq"]).float()
        cos, sin = (part(angles) * case["attention_factor"] for part in (torch.cos, torch.sin))
        turned = {}
        for key in "qk":
            x = torch.tensor(np.tile(case[key], (len(case["positions"]), 1)), dtype=torch.float32)[None, :, None]
            turned[key] = (
                turn(x, cos, sin, interleaved=case["pairing"] == "interleaved")[0, :, 0]
                .double()
                .numpy()
                .round(7)
                .tolist()
            )
        rows.append({"id": name, **turned})
    about = f"apply_rotary_emb_torch of Dao-AILab/flash-attention@{commit}, float32, made by {Path(__file__).name}"
    text = json.dumps({"about": about, "rows": rows})
    (HERE / "conformance_flash_attn.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
