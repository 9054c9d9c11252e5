"""Write rope_viz/runtimes/asked.json: which engines answered about which architecture and scaling.

    python tests/goldens/make_asked.py

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


def main():
    """Write the file."""
    lines = ",\n".join(json.dumps(row) for row in list_rows())
    about = "Written by tests/goldens/make_asked.py: runtime, release, type, scaling, new keys, config, date, verdict."
    OUTPUT.write_text(f'{{"_about": "{about}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
