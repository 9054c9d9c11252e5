"""Answer prompts by llama-cpp-python: a script that imports nothing of RoPE Viz."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Read the task from standard input and print the answers as one line of JSON."""
    import llama_cpp
    import numpy as np

    task = json.load(sys.stdin)
    longest = max(map(len, task["prompts"]))
    model = llama_cpp.Llama(
        str(Path(task["folder"]) / "probe.gguf"),
        n_ctx=task.get("longest") or longest,
        logits_all=True,
        type_k=0,  # float32, as the weights
        type_v=0,
        verbose=False,
        **(task.get("overrides") or {}),
    )
    answers = []
    for prompt in task["prompts"]:
        model.reset()
        model.eval(prompt)
        logits = np.array(model.scores[: len(prompt) - 1], dtype=np.float64)
        most = logits.max(axis=1)
        total = most + np.log(np.exp(logits - most[:, None]).sum(axis=1))
        answers.append((logits[np.arange(len(total)), prompt[1:]] - total).tolist())
    print(json.dumps({"release": llama_cpp.__version__, "answers": answers}))


if __name__ == "__main__":
    main()
