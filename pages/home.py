"""What RoPE is, with one live picture, and which page answers which question."""

from rope_viz.pictures import home
from rope_viz.ui import page

# Each start point is a link to a page with a model.
STARTS = [
    ("Llama 3.1 8B", "8k to 128k by Llama 3 scaling", "scaling", "llama-3.1-8b"),
    ("Qwen3 8B with YaRN × 4", "the documented way to 128k", "scaling", "qwen3-8b-yarn"),
    ("gpt-oss 20B", "YaRN × 32, its range not rounded", "scaling", "gpt-oss-20b"),
    ("DeepSeek-V3", "64 rotated dimensions, YaRN × 40", "frequencies", "deepseek-v3"),
    ("Phi-4 mini", "LongRoPE: a divisor for every pair", "scaling", "phi-4-mini"),
    ("Llama 2 7B", "plain RoPE, trained to 4k", "frequencies", "llama-2-7b"),
]

page.start("RoPE Viz", page.text("home"))
page.primary_button("learn", "New here? Learn it in twelve steps")
page.show(home.turning)
page.mobile_knobs("base", "context", "target", "factor")
page.next_page_link("learn", "Start the tour")
page.explain("picture")
page.starts(STARTS)
page.questions(
    {
        "learn": "What is it all about? Twelve steps, each one picture, one sentence and one thing to do.",
        "rotation": "What does turning q and k do, and why does only the distance matter?",
        "frequencies": "How fast does every pair turn, and which never went round in training?",
        "scaling": "What do YaRN, NTK, Llama 3 and LongRoPE do to this model, pair by pair?",
        "extend": "You have this model and need 128k: what to write, where, and is it right?",
        "runtimes": "What does each runtime make of this config, and what is wrong with it?",
        "decay": "How does the score of a query and a key change with distance, and what do the bounds promise?",
        "axes": "How do rows, columns and frames turn the pairs of models that see, and what lies beyond their grid?",
        "attention": "What does position do to the attention of a sentence, added, rotated or not at all?",
        "recall": "Does a model still find what it read, under any scaling, and which pairs carry that?",
        "heads": "Which pairs does a real model's head use, and what would another method do to it?",
        "precision": "From which position on does rounding confuse this model, and who rounds where?",
        "kernels": "How exactly and how fast are q and k rotated for real, here and on your machine?",
    }
)
page.words()
