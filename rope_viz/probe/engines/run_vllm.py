"""Answer prompts by vLLM without a server: a script that imports nothing of RoPE Viz."""

import json
import os
import sys


def main() -> None:
    """Read the task from standard input and print the answers as one line of JSON."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    import vllm

    task = json.load(sys.stdin)
    # What the engine prints belongs to standard error: the answer is the last line of standard output.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        engine = vllm.LLM(
            task["folder"],
            skip_tokenizer_init=True,
            dtype="float32",
            enforce_eager=True,
            max_model_len=task.get("longest") or None,
            hf_overrides=task.get("overrides") or {},
        )
        settings = vllm.SamplingParams(max_tokens=1, temperature=0, prompt_logprobs=0, detokenize=False)
        prompts = [{"prompt_token_ids": prompt} for prompt in task["prompts"]]
        answers = [
            [step[id].logprob for step, id in zip(one.prompt_logprobs[1:], one.prompt_token_ids[1:], strict=True)]
            for one in engine.generate(prompts, settings, use_tqdm=False)
        ]
        out.write(json.dumps({"release": vllm.__version__, "answers": answers}) + "\n")


if __name__ == "__main__":
    main()
