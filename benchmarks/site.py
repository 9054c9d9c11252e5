"""Time of `rope-viz site` over many configs: CPU time for each model, wall time, links, and the rest of a kill.

python benchmarks/site.py [--count 300] [--kill-after 60]

The configs are those of the catalog, each several times with another number of layers, so that no page is the same. The
command is killed after the given number of pages and started again. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rope_viz.models.catalog import catalog

ROOT = Path(__file__).resolve().parents[1]


def write_configs(folder: Path, count: int) -> None:
    """Write so many configs, each in a folder of its own."""
    ids = list(catalog())
    for number in range(count):
        name = ids[number % len(ids)]
        config = json.loads(json.dumps(dict(catalog()[name].config)))
        part = config.get("text_config", config)
        part["num_hidden_layers"] = int(part.get("num_hidden_layers", 1)) + number // len(ids)
        place = folder / f"{name}-{number}"
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps(config), encoding="utf-8")


def run(folder: Path, site: Path, kill_after: int = 0) -> tuple[float, float, int]:
    """Run the command and return (wall seconds, CPU seconds, pages there already); kill it after so many pages."""
    words = [sys.executable, "-m", "rope_viz", "site", str(folder), "-o", str(site)]
    before, begin, found = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if match := re.search(r"([\d,]+) of [\d,]+ pages are there", line):
                found = int(match[1].replace(",", ""))
            if kill_after and f"{kill_after:,} of" in line:
                os.kill(process.pid, signal.SIGKILL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - begin, cpu, found


def count_broken(site: Path) -> tuple[int, int]:
    """Return (links, broken links) of all pages."""
    total = broken = 0
    for page in site.rglob("*.html"):
        text = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r'(?:href|src)="([^"#]+)"', text):
            total, broken = total + 1, broken + (not (page.parent / unquote(target)).is_file())
    return total, broken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--kill-after", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, site, other = (Path(temporary) / name for name in ("configs", "site", "killed"))
        write_configs(folder, given.count)
        wall, cpu, _ = run(folder, site)
        links, broken = count_broken(site)
        killed, _, _ = run(folder, other, given.kill_after)
        rest, _, found = run(folder, other)
        size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
        same = sorted(path.name for path in site.rglob("*")) == sorted(path.name for path in other.rglob("*"))
    print("| configs | wall time | CPU time a model | site | links | broken |\n|---:|---:|---:|---:|---:|---:|")
    print(f"| {given.count} | {wall:.0f} s | {cpu / given.count:.2f} s | {size / 1e6:.0f} MB | {links:,} | {broken} |")
    end = f"and finished in {rest:.0f} s; same files: {same}"
    print(f"\nKilled after {killed:.0f} s, it found {found} pages {end}.")


if __name__ == "__main__":
    main()
