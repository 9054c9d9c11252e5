"""Ask vLLM in this process: it is imported once, and each model is loaded in a forked child, which then ends.

Run by vLLM's own Python. Each line of the input is a job: {"model": folder, "out": file, "log": file, "prompts": lists
of token ids, "arguments": those of LLM, "timeout": seconds}. The child writes to `out` the log-probabilities of each
prompt after its first token and what it says of its cache, or {"error": sentence}. Then one line is printed per job.
"""

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
import time

# What every model needs is imported once; older releases lack some of these.
PARTS = """
vllm.entrypoints.llm vllm.v1.engine.llm_engine vllm.v1.engine.core vllm.v1.executor.uniproc_executor
vllm.v1.worker.cpu_worker vllm.v1.worker.cpu_model_runner vllm.v1.attention.backends.cpu_attn
vllm.model_executor.model_loader.default_loader vllm.model_executor.models.llama
""".split()


def main() -> None:
    """Answer every job of the input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import vllm
    from vllm.model_executor.models import registry

    for name in PARTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # vLLM looks at a model's class in a process of its own, to keep its own clean. A child is one already.
    registry._run_in_subprocess = lambda function: function()

    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(int(job.get("timeout", 600)))
            os.setpgid(0, 0)
            run(vllm, job)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        print(json.dumps({"status": status}), file=answers, flush=True)


def run(vllm, job: dict) -> None:
    """Load the model of a job, ask it, and write the answer."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # A model that hangs says where before the alarm ends it.
    faulthandler.dump_traceback_later(max(int(job.get("timeout", 600)) - 5, 1), file=log)
    if not job["prompts"]:
        threading.Thread(target=end_with_size, args=(job,), daemon=True).start()
    try:
        found = ask(vllm, job)
    except BaseException as error:
        import traceback

        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.flush()
    sys.stderr.flush()
    write(job, found)


def write(job: dict, found: dict) -> None:
    """Write the answer of a job, whole."""
    with open(job["out"] + ".part", "w") as file:
        json.dump(found, file)
    os.rename(job["out"] + ".part", job["out"])


def end_with_size(job: dict) -> None:
    """End this process as soon as its log has the size of the cache: nothing else is wanted, and to warm up is slow."""
    while True:
        time.sleep(0.2)
        with open(job["log"], errors="replace") as log:
            if "Maximum concurrency" in log.read():
                write(job, {})
                os._exit(0)


def ask(vllm, job: dict) -> dict:
    """Return the log-probabilities of every prompt, and the sizes of the cache."""
    engine = vllm.LLM(model=job["model"], **job["arguments"])
    options = vllm.SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0, detokenize=False)
    answers = []
    for prompt in job["prompts"]:
        found = engine.generate([{"prompt_token_ids": prompt}], options, use_tqdm=False)[0].prompt_logprobs
        answers.append([float(each[token].logprob) for each, token in zip(found[1:], prompt[1:], strict=True)])
    return {"answers": answers}


if __name__ == "__main__":
    main()
