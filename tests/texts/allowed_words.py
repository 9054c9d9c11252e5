"""Words that the screen shows in every language: names, commands, functions and units.

Names of models and runtimes come from their lists; code, formulas and words with digits or capitals inside by form.
"""

from rope_viz.figures.hands import WORDS
from rope_viz.pages.learn.figures import SENTENCE
from rope_viz.studies.attention import DEFAULT_SENTENCE

ALLOWED = {
    # sentences that models read
    *WORDS,
    *SENTENCE.split(),
    *DEFAULT_SENTENCE.split(),
    *"Rome Paris movie theater home".split(),
    # functions and signs of formulas
    *"sin cos log exp mod max min inf pi theta lambda".split(),
    # units
    *"px ms tok kB dB GB MB GiB MiB KiB tokens".split()[:-1],
    # names of methods, libraries and programs
    *"llama cpp transformers torch flash attn Hugging Face Megatron Ollama Axolotl Unsloth Triton NumPy".split(),
    *"Llama Qwen Gemma Mistral Phi Kimi Grok Falcon Mixtral Ministral".split(),
    *"Streamlit Plotly Matplotlib RoPE Viz".split(),
    *"megatron torchtitan nemo unsloth axolotl mbridge verl litgpt torchtune nanotron levanter backend".split(),
    *"mistral laguna gpt oss yarn longrope ntk linear dynamic none tensorrt seed".split(),
    *"vllm sglang mlx gguf llm eager Liger".split(),
    # authors and parts of sources
    *"et al Hsieh Peng Men Chen Northanger Abbey main results abstract Processing Long Texts".split(),
    *"md Technical Report table default".split(),
    # a trace that is not shown
    "seam",
    # values of keys
    *"true false null truncate cpu cuda interleaved half".split(),
}
