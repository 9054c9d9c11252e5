"""`check TARGET --draft CONFIG`. Rules: vLLM 0.33.0 config/speculative.py; RoPE: NVIDIA-NeMo/Automodel#2399."""

import json

import pytest

from rope_viz.cli.main import main

TARGET = {
    **{"model_type": "qwen3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128, "vocab_size": 151936},
    **{"max_position_embeddings": 40960, "rope_theta": 1000000},
}
HEAD = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4096, "head_dim": 128},
    **{"num_attention_heads": 32, "vocab_size": 151936, "draft_vocab_size": 32000, "max_position_embeddings": 40960},
    "rope_theta": 1000000,
}
SMALL = {**TARGET, "hidden_size": 1024, "num_attention_heads": 16}


@pytest.mark.parametrize(
    ("draft", "code", "words"),
    [
        (SMALL, 0, []),
        (HEAD, 0, []),
        ({**SMALL, "vocab_size": 151646}, 2, ["the draft of 151,646", "vLLM refuses this pair"]),
        ({**HEAD, "draft_vocab_size": 200000}, 2, ["among 200,000 tokens"]),
        # sgl-project/sglang#6783: a head with 2,048 positions.
        ({**HEAD, "max_position_embeddings": 2048}, 1, ["The draft reaches 2,048 tokens, the target 40,960"]),
        # vllm-project/vllm-ascend#6612: the head has another base.
        ({**HEAD, "rope_theta": 10000}, 1, ["×93.06 at pair 63", "only if the draft was trained so"]),
        # A model of its own may rotate as it likes.
        ({**SMALL, "rope_theta": 10000}, 0, []),
    ],
)
def test_what_does_not_fit_is_found(draft, code, words, tmp_path, capsys):
    paths = [tmp_path / "target.json", tmp_path / "draft.json"]
    for path, config in zip(paths, (TARGET, draft), strict=True):
        path.write_text(json.dumps(config))
    assert main(["check", str(paths[0]), "--draft", str(paths[1])]) == code
    lines = [line for line in capsys.readouterr().out.splitlines() if "(draft)" in line]
    assert len(lines) == bool(words)
    assert all(word in lines[0] for word in words)


def test_a_draft_that_is_no_config_is_one_sentence(tmp_path, capsys):
    assert main(["check", "qwen3-8b", "--draft", str(tmp_path / "none.json")]) == 2
    assert "none.json: no such file" in capsys.readouterr().err
