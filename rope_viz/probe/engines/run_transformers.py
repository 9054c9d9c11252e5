"""Answer prompts by transformers: a script that imports nothing of RoPE Viz."""

import json
import sys


def main() -> None:
    """Read the task from standard input and print the answers as one line of JSON."""
    import torch
    import transformers

    task = json.load(sys.stdin)
    transformers.logging.set_verbosity_error()
    overrides = task.get("overrides") or {}
    config = transformers.AutoConfig.from_pretrained(task["folder"], **overrides)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(task["folder"], config=config, torch_dtype=torch.float32)
    model = loaded.eval()
    answers = []
    with torch.inference_mode():
        for prompt in task["prompts"]:
            ids = torch.tensor([prompt])
            logits = model(ids, use_cache=False).logits[0, :-1].float()
            found = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
            answers.append(found.tolist())
    print(json.dumps({"release": transformers.__version__, "answers": answers}))


if __name__ == "__main__":
    main()
