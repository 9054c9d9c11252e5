"""The tab Verify of My model shows the commands that ask each runtime with a probe."""

from rope_viz.advice.plan.extension_plan import make_plan
from rope_viz.models.catalog import catalog
from rope_viz.probe.commands import write_probe_commands


def test_verify_shows_the_commands_of_extend(open_page):
    app = open_page("model", model="qwen3-8b", **{"extend.tab": "verify"})
    shown = [block.value for block in app.code]
    plan = make_plan(catalog()["qwen3-8b"].config, 131072, ["vllm"], known=catalog()["qwen3-8b"])
    commands = write_probe_commands(plan.config, plan.instructions[0])
    assert commands in shown
    assert commands.splitlines()[0] == "rope-viz probe make config.json -o probe"
    assert commands.splitlines()[1].startswith("vllm serve ./probe --hf-overrides ")


def test_remote_code_gets_no_commands():
    config = catalog()["glm-4-9b-chat"].config
    plan = make_plan(config, 131072, ["vllm"])
    assert write_probe_commands(plan.config, plan.instructions[0]) == ""
