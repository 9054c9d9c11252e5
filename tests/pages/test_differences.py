"""The page of all models in all runtimes says what `rope-viz runtimes` prints, and never adds kinds of evidence up."""

import json
import re

import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages import differences
from rope_viz.pages.differences import figures, words
from rope_viz.pages.differences.figures import RELEASE_IDS, list_answers
from rope_viz.picture import export, read_address
from rope_viz.picture.outputs import Grid
from rope_viz.reports.draw import figure
from rope_viz.runtimes.provenance import EXECUTED_ON
from rope_viz.texts.texts import join_list
from tests.offenders import for_each

TWENTY = """
    deepseek-v2 deepseek-v3 deepseek-v3.2 gemma-3-1b gemma-4-full glm-4-9b-chat gpt-j-6b gpt-oss-20b internlm2.5-7b
    kimi-k2-instruct kimi-k2.5 llama-3.1-8b llama-4-scout mimo-7b minimax-m3 olmo-3.1-32b phi-4-mini
    qwen2.5-7b-instruct-yarn qwen3-8b yarn-llama-2-7b-128k
""".split()


def ask(**choices):
    query = {f"differences.{key}": value for key, value in choices.items()}
    return read_address.read_request(differences.PAGE, query)


def grid_of(**choices):
    found = differences.matrix(ask(**choices))
    assert isinstance(found, Grid)
    return found


def print_runtimes(model, capsys):
    """What the command prints as JSON, {name of a release: its row}."""
    assert main(["runtimes", model, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    names = list(RELEASE_IDS.values())
    served = [row for row in rows if row["runtime"] != "paper"]
    assert len(served) == len(names)
    return dict(zip(names, served, strict=True))


def describe_known(answer):
    asked = list(dict.fromkeys(each["release"] for each in answer["asked"]))
    others = [
        f"with {each['config']}: {each['verdict']}" for each in answer["asked"] if each["verdict"] != "as intended"
    ]
    return ", ".join([answer["known"], *([f"asked in {join_list(asked)}"] if asked else []), *others])


@for_each(TWENTY)
def test_cells_are_those_of_the_command(model, capsys):
    printed = print_runtimes(model, capsys)
    (row,) = grid_of(model=model).columns
    assert row.pop("model") == catalog()[model].name
    assert list(row) == list(printed)
    for name, cell in row.items():
        answer = printed[name]
        known, verdict = describe_known(answer), answer["verdict"].removesuffix(" (by rule)")
        if answer["known"] == "not known":
            assert cell == "not known"
        elif verdict.startswith("refuses"):
            assert cell == f"refused ({known})"
        elif answer["agrees"]:
            assert cell == f"same ({known})"
        else:
            number = float(re.search(r"×([\d.]+)", cell)[1])
            expected = float(re.search(r"x([\d.e+]+)", verdict)[1])
            assert number == pytest.approx(expected, rel=5e-3)
            assert cell.endswith(f"({known})")
            assert answer["effect"] is None or expected == pytest.approx(answer["effect"]["ratio"], rel=1e-3)


@for_each(TWENTY)
def test_reasons_are_those_of_the_command(model, capsys):
    printed = print_runtimes(model, capsys)
    shown = {one.name: one for one in differences.list_rows(ask(model=model))}
    assert list(shown) == list(printed)
    for name, answer in printed.items():
        text = shown[name].describe()
        if answer["known"] == "not known":
            assert text.startswith("not known")
        else:
            assert f", {describe_known(answer)}." in text
            assert answer["reason"] in text


def test_counts_are_those_of_the_grid():
    cells = [list(row.values())[1:] for row in grid_of(all="yes").columns]
    assert len(cells) == len(catalog())
    sentence = words.summarise()
    executed = sum(any(re.match(r"differs .*\(executed", cell) for cell in row) for row in cells)
    ruled = sum(any(re.match(r"differs .*\(by rule", cell) for cell in row) for row in cells)
    assert f"{len(catalog())} models" in sentence
    asked = sum(any("asked in" in cell for cell in row) for row in cells)
    assert [int(number) for number in re.findall(r"\*\*(\d+)\*\*", sentence)] == [executed, ruled, asked][
        : 2 + (asked > 0)
    ]
    for place, name in enumerate(RELEASE_IDS.values()):
        column = [row[place] for row in cells]
        for count in (row for row in figures.list_counts() if row["runtime"] == name):
            known = count["key"].replace("_", " ")
            of = [cell for cell in column if f"({known}" in cell]
            found = [sum(cell.startswith(word) for cell in of) for word in ("differs", "same", "refused")]
            assert found == [count["differs"], count["agrees"], count["refuses"]]
            assert count["asked"] == sum("asked in" in cell for cell in of)
            assert count["computed"] == found[0] + found[1]


def test_grid_shows_models_that_differ_and_the_linked_one():
    shown = [row["model"] for row in grid_of().columns]
    assert all(any("differs" in cell for cell in row.values()) for row in grid_of().columns)
    assert catalog()["qwen3-8b"].name not in shown
    linked = grid_of(cell="qwen3-8b_vllm")
    row = next(row for row in linked.columns if row["model"] == catalog()["qwen3-8b"].name)
    assert len(linked.columns) == len(shown) + 1
    columns = list(row)
    assert linked.chosen == linked.columns.index(row) * (len(columns) - 1) + columns.index("vLLM 0.33.0") - 1
    assert words.describe(differences.chosen_answer(ask(cell="qwen3-8b_vllm"))).startswith("**vLLM 0.33.0 agrees**")


@for_each(list(RELEASE_IDS))
def test_filter_leaves_what_the_runtime_computes_differently(runtime):
    request = ask(runtime=runtime)
    name = RELEASE_IDS[runtime]
    if not differences.list_rows(request):
        assert not any(one.differs for row in list_answers().values() for one in row if one.release == runtime)
        assert f"{name} computes no model" in differences.answers(request).sentence
        assert len(grid_of(runtime=runtime).columns) == len(catalog())
        return
    assert all("differs" in row[name] for row in grid_of(runtime=runtime).columns)
    assert {one.release for one in differences.list_rows(request)} == {runtime}


def test_every_cell_has_an_address():
    cells = [one.id for row in list_answers().values() for one in row]
    assert len(set(cells)) == len(cells) == len(catalog()) * len(RELEASE_IDS)
    for cell in cells[:: len(RELEASE_IDS) + 1]:
        assert differences.chosen_answer(ask(cell=cell)).id == cell
    with pytest.raises(ValueError, match="nobody"):
        read_address.strict(differences.PAGE.choices, {"differences.cell": "nobody_vllm"})


def test_figure_has_its_address_and_the_day_of_its_data():
    saved = json.loads(figure("differences/counts", "json"))
    text = json.dumps(saved)
    assert "/rope-viz/picture/differences/counts" in text
    assert EXECUTED_ON in words.date_counts()
    assert EXECUTED_ON in text
    content = export.render(differences.counts, ask(), "csv").decode()
    for row in figures.list_counts():
        numbers = (row["differs"], row["agrees"], row["refuses"], row["asked"])
        assert ",".join(map(str, (row["runtime"], row["key"].replace("_", " "), *numbers))) in content


def test_the_older_table_of_all_models_keeps_its_address():
    """My model has a link to this page in its place."""
    tables = [json.loads(figure(f"runtimes/models{query}", "json"))["data"] for query in ("", "?runtimes.all=yes")]
    short, whole = (len(table[0]["cells"]["values"][0]) for table in tables)
    assert 0 < short < whole == len(catalog())


def test_my_model_links_to_the_page_of_all_models(open_page):
    app = open_page("model", model="qwen3-8b", **{"extend.tab": "runtimes"})
    assert "differences" in [link.proto.page.removeprefix("/") for link in app.get("page_link")]
