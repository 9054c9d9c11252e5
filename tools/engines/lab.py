"""Ask real engines which rotary embedding they compute, and what their caches take. Writes one JSON.

    python tools/engines/lab.py vllm 0.32.0 -o answers.json
    python tools/engines/lab.py vllm 0.18.0 -o answers.json --in-process --configs llama-yarn phi3-longrope
    python tools/engines/lab.py mlx-lm 0.32.2 -o answers.json

One command makes an environment from the package index, starts the engine with a probe of each config, asks it, and
removes what it started, also on Ctrl-C; `--keep` keeps the environment. What is in the JSON is not asked again, and the
engine's own answers stay in the work folder, so that `--judge` decides anew without an engine.

Nothing of this is part of the tests. An environment of vLLM has 4 to 8 GB.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import datetime
import functools
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import environments  # noqa: E402
import processes  # noqa: E402

from rope_viz.models.model_config import ModelConfig  # noqa: E402
from rope_viz.probe import ask_probe, reference  # noqa: E402
from rope_viz.probe import make_probe as probes  # noqa: E402
from rope_viz.probe.ask_probe import ENGINES  # noqa: E402
from rope_viz.probe.clients import NoAnswerError, NoLogProbsError, find_interface, open_server, read_served  # noqa: E402
from rope_viz.probe.hypotheses import PREDICTED  # noqa: E402
from rope_viz.probe.judge import judge  # noqa: E402
from rope_viz.probe.prompts import LONGEST, ROOM, list_prompts  # noqa: E402
from rope_viz.probe.worker_process import TransformersProcess, start_worker  # noqa: E402
from rope_viz.runtimes.releases import format_name  # noqa: E402
from rope_viz.storage.write_file import write_file  # noqa: E402

READY = 600.0
"""Seconds that a server has to load a probe, and a model in the process of an engine to answer."""
VLLM = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
# A forked child must not wait for threads that only its parent had, nor compile what it runs once.
FORKED = {"OMP_NUM_THREADS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "TORCHDYNAMO_DISABLE": "1"}
CACHE = {"max_model_len": 32768, "block_size": 32, "max_num_batched_tokens": 8192}
"""How vLLM is started where only its cache is read; 32 is the least block of its attention on processors."""
SERVERS: Mapping[str, Sequence[str]] = {
    "vllm": (
        "{bin}/vllm serve {folder} --dtype {dtype} --skip-tokenizer-init --enforce-eager --max-model-len {longest} "
        "--max-num-seqs 4 --host 127.0.0.1 --port {port} --hf-overrides"
    ).split(),
    "transformers": "{bin}/transformers serve {folder} --dtype float32 --host 127.0.0.1 --port {port}".split(),
    "mlx-lm": "{bin}/python -m mlx_lm.server --model {folder} --host 127.0.0.1 --port {port}".split(),
}
"""{engine: how its server is started}. vLLM gets the overrides as its last argument."""
PACKAGES = {
    "transformers": ("torch", "transformers"),
    "mlx-lm": ("mlx_lm.utils",),
    "llama-cpp-python": ("llama_cpp",),
}
"""{engine: what is imported before a process forks}."""
HEALTH = {"vllm": "/health", "transformers": "/v1/models", "mlx-lm": "/health"}


@dataclass(frozen=True)
class Probe:
    """One probe: its name, its folder, the overrides of its engine, and the prompts."""

    name: str
    folder: Path
    overrides: Mapping[str, Any]
    prompts: Sequence[Sequence[int]]
    dtype: str = "float32"

    @property
    def longest(self) -> int:
        """The length that an engine is started with."""
        return max(map(len, self.prompts)) + ROOM


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=tuple(ENGINES))
    parser.add_argument("release")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the JSON, which is continued")
    parser.add_argument("--list", type=Path, default=HERE / "configs.json", help="the configs")
    parser.add_argument("--configs", nargs="+", metavar="NAME", help="only these of the list")
    parser.add_argument("--in-process", action="store_true", help="load the engine without its server")
    parser.add_argument("--python", type=Path, help="an environment that has the engine, in place of a new one")
    parser.add_argument("--work", type=Path, default=Path("engines"), help="where environments and probes are made")
    parser.add_argument("--keep", action="store_true", help="keep the environment")
    parser.add_argument("--caches", action="store_true", help="read what vLLM reserves for the configs of caches.json")
    parser.add_argument("--judge", action="store_true", help="judge the answers of the work folder again")
    return parser.parse_args()


def main() -> None:
    """Ask one release of one engine."""
    parsed = read_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if parsed.caches:
        main_of_caches(parsed)
        return
    share_worker()
    listed = json.loads(parsed.list.read_text())["configs"]
    names = parsed.configs or list(listed)
    answers = parsed.work / "answers" / f"{parsed.engine}-{parsed.release}"
    answers.mkdir(parents=True, exist_ok=True)
    rows = json.loads(parsed.output.read_text())["rows"] if parsed.output.exists() else []
    known = {row["config"] for row in rows if (row["engine"], row["release"]) == (parsed.engine, parsed.release)}
    made: list[Probe] = []
    for name in names:
        if parsed.judge or name not in known:
            made += make_one(name, listed[name], parsed.engine == "llama-cpp-python", parsed.work, answers)
    wanted = [probe for probe in made if not (answers / f"{probe.name}.json").exists()]
    if wanted and not parsed.judge:
        with open_environment(parsed) as python:
            ask_all(parsed, python, wanted, answers)
    for name in names:
        found = answers / f"{name}.json"
        if not found.exists() or (name in known and not parsed.judge):
            continue
        place = parsed.work / ("gguf" if parsed.engine == "llama-cpp-python" else "probes") / name
        row = make_row(parsed.engine, parsed.release, name, listed[name], place, json.loads(found.read_text()))
        rows = [one for one in rows if not is_same(one, row)] + [row]
        write_file(parsed.output, format_rows(rows).encode())
        print(f"{name}: {row.get('verdict') or 'not asked: ' + row['error']}", row.get("hypothesis") or "", flush=True)


def share_worker() -> None:
    """Let all probes and judgements use one process of transformers, whose start takes longer than its work."""
    kept: list[TransformersProcess] = []
    end = contextlib.ExitStack()
    atexit.register(end.close)

    @contextlib.contextmanager
    def reuse() -> Iterator[TransformersProcess]:
        if not kept or kept[-1].process.poll() is not None:
            kept.append(end.enter_context(start_worker()))
        yield kept[-1]

    probes.start_worker = reference.start_worker = reuse  # type: ignore[assignment]


def main_of_caches(parsed: argparse.Namespace) -> None:
    """Write what a release of vLLM says of its cache for every config of caches.json."""
    configs = json.loads((HERE / "caches.json").read_text())["configs"]
    rows = json.loads(parsed.output.read_text())["rows"] if parsed.output.exists() else []
    known = {row["config"] for row in rows if (row["engine"], row["release"]) == (parsed.engine, parsed.release)}
    wanted = {name: configs[name] for name in parsed.configs or configs if name not in known}
    about = {"engine": parsed.engine, "release": parsed.release, "date": find_today()}
    with open_environment(parsed) as python:
        for name, found in read_caches(python, wanted, parsed.work):
            row = {
                **about,
                "config": name,
                **(found.get("cache") or {"error": found.get("error", "no size in its log")}),
            }
            rows.append(row)
            write_file(parsed.output, format_rows(rows).encode())
            print(row, flush=True)


@contextlib.contextmanager
def open_environment(parsed: argparse.Namespace) -> Iterator[Path]:
    """Make the environment of an engine, yield its Python, and remove it again unless it is to be kept."""
    folder = parsed.work / f"{parsed.engine}-{parsed.release}"
    try:
        yield parsed.python or environments.make_environment(parsed.engine, parsed.release, folder)
    finally:
        if not parsed.keep and not parsed.python:
            shutil.rmtree(folder, ignore_errors=True)


def find_today() -> str:
    """Return the date."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two rows are of one question."""
    return all(one[key] == other[key] for key in ("engine", "release", "config"))


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the JSON with one row per line."""
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda one: (one["engine"], one["release"])))
    return f'{{"rows": [\n{lines}\n]}}\n'


def make_one(name: str, entry: Mapping[str, Any], gguf: bool, work: Path, answers: Path) -> list[Probe]:
    """Return the probe of a config, [] where none can be made; the reason becomes its answer."""
    try:
        place = work / ("gguf" if gguf else "probes") / name
        if not (place / "probe.json").exists():
            probes.make_probe(entry["config"], place, entry.get("overrides"), gguf=gguf)
        small = json.loads((place / "config.json").read_text())
        prompts = list_prompts(ModelConfig.read({**small, **entry.get("means", {})}), LONGEST)
    except ValueError as error:
        write_answer(answers, name, {"error": f"no probe: {error}"})
        return []
    return [Probe(name, place, entry.get("overrides") or {}, prompts, entry.get("dtype", "float32"))]


def write_answer(answers: Path, name: str, found: Mapping[str, Any]) -> None:
    """Write what an engine answered to one probe, with the date."""
    write_file(answers / f"{name}.json", json.dumps({"date": find_today(), **found}).encode())


def ask_all(parsed: argparse.Namespace, python: Path, probes: Sequence[Probe], answers: Path) -> None:
    """Ask an engine about every probe, and write each answer as it comes."""
    if parsed.in_process or parsed.engine not in SERVERS:
        ask = ask_vllm_in_process if parsed.engine == "vllm" else functools.partial(ask_in_process, parsed.engine)
        for probe, found in ask(python, probes, parsed.work):
            write_answer(answers, probe.name, found)
        return
    for probe in probes:
        try:
            found = ask_by_server(parsed.engine, python, probe, parsed.work)
        except (RuntimeError, NoAnswerError, NoLogProbsError) as error:
            found = {"error": str(error)}
        write_answer(answers, probe.name, found)


def ask_in_process(
    engine: str, python: Path, probes: Sequence[Probe], work: Path
) -> Iterator[tuple[Probe, dict[str, Any]]]:
    """Load probes by an engine's package, which is imported once, and yield each answer."""
    script = Path(ask_probe.__file__).parent / "engines" / ENGINES[engine][0]
    command = [str(python), str(HERE / "forks.py"), str(script), *PACKAGES[engine]]
    tasks = {}
    for probe in probes:
        task = {"folder": str(probe.folder.resolve()), "prompts": probe.prompts, "overrides": dict(probe.overrides)}
        tasks[probe.name] = {"task": {**task, "longest": probe.longest}}
    for probe, found in zip(probes, run_tasks(command, FORKED, tasks, work / engine), strict=True):
        yield probe, {**found, **({"by": "process", "served": probe.longest} if "answers" in found else {})}


def ask_by_server(engine: str, python: Path, probe: Probe, work: Path) -> dict[str, Any]:
    """Start an engine's server with a probe, ask it, and end it."""
    port, log = processes.find_port(), work / "logs" / f"{engine}-{probe.name}.log"
    values = {"bin": python.parent, "folder": probe.folder, "port": port, "longest": probe.longest}
    values["dtype"] = probe.dtype
    command = [part.format(**values) for part in SERVERS[engine]]
    command += [json.dumps(probe.overrides)] if engine == "vllm" else []
    with processes.start(command, VLLM | find_preload(python), log) as process:
        url = f"http://127.0.0.1:{port}"
        processes.wait_until_healthy(process, url + HEALTH[engine], log, READY)
        server = open_server(url, READY)
        interface = find_interface(server, read_served(server).model)
        given = [interface.ask(prompt) for prompt in probe.prompts]
    return {"by": "server", "served": probe.longest, "answers": given, **read_cache(log.read_text(errors="replace"))}


def find_preload(python: Path) -> dict[str, str]:
    """Return the variables that older releases of vLLM need."""
    found = environments.find_preloads(python.parents[1])
    return {"LD_PRELOAD": found} if found else {}


def ask_vllm_in_process(python: Path, probes: Sequence[Probe], work: Path) -> Iterator[tuple[Probe, dict[str, Any]]]:
    """Ask vLLM about many probes with one import, and yield each answer."""
    tasks = {
        probe.name: {
            "model": str(probe.folder.resolve()),
            "prompts": probe.prompts,
            "arguments": {
                "skip_tokenizer_init": True,
                "dtype": probe.dtype,
                "enforce_eager": True,
                "max_model_len": probe.longest,
                "max_num_seqs": 4,
                "hf_overrides": dict(probe.overrides),
            },
        }
        for probe in probes
    }
    for probe, found in zip(probes, run_vllm(python, tasks, work / "process"), strict=True):
        yield probe, {**found, **({"by": "process", "served": probe.longest} if "answers" in found else {})}


def read_caches(python: Path, configs: Mapping[str, Any], work: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Start vLLM with configs without weights, and yield what it says of its cache."""
    arguments = {
        "skip_tokenizer_init": True,
        "load_format": "dummy",
        "dtype": "bfloat16",
        "enforce_eager": True,
        "max_num_seqs": 4,
        **CACHE,
    }
    tasks = {}
    for name, config in configs.items():
        folder = (work / "caches" / name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / "config.json", json.dumps(config).encode())
        tasks[name] = {"model": str(folder), "prompts": [], "arguments": arguments}
    yield from zip(tasks, run_vllm(python, tasks, work / "caches", {"VLLM_CPU_KVCACHE_SPACE": "8"}), strict=True)


def run_vllm(
    python: Path, tasks: Mapping[str, Mapping[str, Any]], place: Path, more: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Run tasks in vLLM with one import, and yield the answers of each model and the sizes of its cache."""
    command = [str(python), str(HERE / "vllm_worker.py")]
    environment = VLLM | FORKED | find_preload(python) | dict(more or {})
    for name, found in zip(tasks, run_tasks(command, environment, tasks, place), strict=True):
        log = place / f"{name}.log"
        yield {**found, **read_cache(log.read_text(errors="replace") if log.exists() else "")}


def run_tasks(
    command: Sequence[str], environment: Mapping[str, str], tasks: Mapping[str, Mapping[str, Any]], place: Path
) -> Iterator[dict[str, Any]]:
    """Give tasks to a worker one by one, and yield what each wrote, or {"error": sentence}."""
    place = place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with processes.start(command, environment, place / "worker.log", **streams) as worker:
        for name, task in tasks.items():
            out, log = place / f"{name}.json", place / f"{name}.log"
            out.unlink(missing_ok=True)
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.write(json.dumps({**task, "out": str(out), "log": str(log), "timeout": READY}) + "\n")
                worker.stdin.flush()
            if not worker.stdout.readline():
                raise RuntimeError(processes.read_error((place / "worker.log").read_text(errors="replace")))
            words = log.read_text(errors="replace") if log.exists() else ""
            yield json.loads(out.read_text()) if out.exists() else {"error": processes.read_error(words)}


def read_cache(log: str) -> dict[str, Any]:
    """Return what vLLM says of its cache: tokens, the length of a request, how many fit, and the block of hybrids."""
    found = re.search(r"KV cache size: ([\d,]+) tokens", log)
    many = re.search(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x", log)
    space = re.search(r"Explicitly set \(([\d.]+)/", log)
    block = re.search(r"Setting attention block size to (\d+) tokens", log)
    if (needed := re.search(r"max seq len \((\d+)\).*?([\d.]+) GiB KV cache is needed", log)) is not None:
        # A request that does not fit is told what it needs.
        length = int(needed[1])
        return {
            "cache": {"tokens": length, "length": length, "requests": 1.0, "bytes": round(float(needed[2]) * 2**30)}
        }
    if found is None or many is None:
        return {}
    cache = {
        "tokens": int(found[1].replace(",", "")),
        "length": int(many[1].replace(",", "")),
        "requests": float(many[2]),
        "bytes": round(float(space[1]) * 2**30) if space else None,
    }
    return {"cache": cache | ({"block": int(block[1])} if block else {})}


def make_row(
    engine: str, release: str, name: str, entry: Mapping[str, Any], place: Path, answer: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the answers of an engine say, or why it was not asked."""
    row = {"engine": engine, "release": release, "config": name, "date": answer["date"]}
    if "error" in answer:
        return row | {"error": answer["error"]}
    means = {**json.loads((place / "config.json").read_text()), **entry.get("means", {})}
    runtime = ENGINES[engine][1]
    try:
        found = judge(means, answer["answers"], runtime=runtime, version=release, served=answer["served"], folder=place)
    except ValueError as error:
        return row | {"error": f"no reference: {error}"}
    ruled = [one for one in found["names"] if one.startswith(PREDICTED)]
    return row | {
        "by": answer["by"],
        "verdict": found["verdict"],
        "hypothesis": [one for one in found["names"] if one not in ruled],
        "rules": [name for one in ruled if (name := one.removeprefix(PREDICTED)).startswith(format_name(runtime))],
        "distance": shorten(found["distance"]),
        "next": found["next_name"],
        "next_distance": shorten(found["next_distance"]),
        "first": found["first"],
        "noise": shorten(found["noise"]),
    }


def shorten(value: float | None) -> float | None:
    """Return a distance with three digits."""
    return None if value is None else float(f"{value:.3g}")


if __name__ == "__main__":
    main()
