"""Write rope_viz/runtimes/asked.json: which engines answered about which architecture and scaling.

    python tests/goldens/make_asked.py
    python tests/goldens/make_asked.py --table   # for docs/probe.md

It reads the answers (asked.json here, written by tools/engines/lab.py) and the configs that were asked about. Answers
about overrides are left out, because they say nothing of the file alone.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from rope_viz.models.model_config import ModelConfig  # noqa: E402
from rope_viz.probe.ask_probe import ENGINES  # noqa: E402
from rope_viz.runtimes import read_case  # noqa: E402
from rope_viz.runtimes.asked_engines import NEW_KEYS  # noqa: E402

OUTPUT = ROOT / "rope_viz" / "runtimes" / "asked.json"


def list_rows():
    """Return a row for each answer and each scaling of its config."""
    configs = json.loads((ROOT / "tools" / "engines" / "configs.json").read_text())["configs"]
    rows = []
    for answer in json.loads((HERE / "asked.json").read_text())["rows"]:
        entry = configs[answer["config"]]
        if "verdict" not in answer or entry.get("overrides"):
            continue
        model = ModelConfig.read(entry["config"])
        cases = [read_case(model, layer_type=layer or None) for layer in model.specs]
        about = [answer["config"], answer["date"], answer["verdict"]]
        engine = [ENGINES[answer["engine"]][1], answer["release"]]
        for fields, kind in dict.fromkeys((case.fields.kind, case.kind) for case in cases):
            rows.append([*engine, fields, kind, bool(model.fields.config.get(NEW_KEYS)), *about])
    return sorted(rows)


def make_table():
    """Return the lines of the table of engines in docs/probe.md."""
    found = {}
    for row in json.loads((HERE / "asked.json").read_text())["rows"]:
        found.setdefault((row["engine"], row["release"]), []).append(row)
    lines = ["| engine | release | date | how | asked | as intended | something else | cannot tell | not asked |"]
    lines.append("|" + "---|" * 9)
    for (engine, release), rows in sorted(
        found.items(), key=lambda one: (one[0][0], list(map(int, one[0][1].split("."))))
    ):
        asked = [row for row in rows if "verdict" in row]
        ways = {way: sum(row["by"] == way for row in asked) for way in ("server", "process")}
        how = " and ".join(
            f"{count} by its {way}" if way == "server" else f"{count} in process"
            for way, count in ways.items()
            if count
        )
        verdicts = [row["verdict"] for row in asked]
        other = sum(one in ("something else", "none of these") for one in verdicts)
        date = max(row["date"] for row in rows)
        counts = (
            len(asked),
            verdicts.count("as intended"),
            other,
            verdicts.count("cannot tell"),
            len(rows) - len(asked),
        )
        lines.append(f"| {engine} | {release} | {date} | {how} | {' | '.join(map(str, counts))} |")
    return lines


def main():
    """Write the file, or print the table."""
    if "--table" in sys.argv:
        print("\n".join(make_table()))
        return
    lines = ",\n".join(json.dumps(row) for row in list_rows())
    about = "Written by tests/goldens/make_asked.py: runtime, release, type, scaling, new keys, config, date, verdict."
    OUTPUT.write_text(f'{{"_about": "{about}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
