"""Speed of `evaluate` over one, two and three servers of one method that wait a fixed time for each question.

python benchmarks/many_servers.py [--delay 0.05] [--repeats 20] [--concurrency 4] [--rounds 3]

The servers run in this process. Prints questions a second (median of the rounds), the ratio to one server, and whether
the answers are equal.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.evaluation.completion_clients import Server
from rope_viz.evaluation.dispatch import Worker
from rope_viz.evaluation.evaluation_plan import AnswerRow, read_evaluation
from rope_viz.evaluation.run_evaluation import EvaluationPlan, evaluate
from tests.tiny_lm.completion_servers import passkey_servers


def run_once(plan: EvaluationPlan, count: int, delay: float, concurrency: int) -> tuple[float, tuple[AnswerRow, ...]]:
    """Evaluate over so many servers and return (seconds, answers)."""
    with passkey_servers(count, delay=delay) as servers, tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        workers = [Worker(server.url, {"none": Server(server.url, "m")}, concurrency) for server in servers]
        begin = time.perf_counter()
        evaluate(plan, workers, out)
        return time.perf_counter() - begin, read_evaluation(out).rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds for each question")
    parser.add_argument("--repeats", type=int, default=20, help="22 questions each")
    parser.add_argument("--concurrency", type=int, default=4, help="requests of each server at once")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    depths = tuple(place / 10 for place in range(11))
    plan = EvaluationPlan(methods=("none",), lengths=(400, 800), depths=depths, repeats=given.repeats)
    runs = {count: [] for count in (1, 2, 3)}
    for _ in range(given.rounds):
        for count, results in runs.items():
            results.append(run_once(plan, count, given.delay, given.concurrency))
    alone = statistics.median(seconds for seconds, _ in runs[1])
    print("| servers | questions a second | ratio | same answers |\n|---:|---:|---:|---|")
    for count, results in runs.items():
        seconds = statistics.median(seconds for seconds, _ in results)
        same = "yes" if all(rows == runs[1][0][1] for _, rows in results) else "NO"
        print(f"| {count} | {plan.size / seconds:.0f} | {alone / seconds:.2f} | {same} |")


if __name__ == "__main__":
    main()
