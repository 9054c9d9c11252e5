"""Answer prompts by mlx-lm: a script that imports nothing of RoPE Viz."""

import json
import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Read the task from standard input and print the answers as one line of JSON."""
    import mlx.core as mx
    from mlx_lm.utils import load_model

    task = json.load(sys.stdin)
    overrides = task.get("overrides") or {}
    model, _ = load_model(Path(task["folder"]), model_config=overrides)
    answers = []
    for prompt in task["prompts"]:
        ids = mx.array(prompt)
        logits = model(ids[None])[0, :-1].astype(mx.float32)
        found = mx.take_along_axis(logits, ids[1:, None], axis=-1)[:, 0] - mx.logsumexp(logits, axis=-1)
        answers.append(found.tolist())
    print(json.dumps({"release": version("mlx-lm"), "answers": answers}))


if __name__ == "__main__":
    main()
