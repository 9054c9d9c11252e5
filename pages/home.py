"""The first page: RoPE in one live picture, and the question that each page answers."""

from rope_viz.pictures import home
from rope_viz.ui import page

# Each start point is a link to a page with a model.
STARTS = [
    ("Llama 3.1 8B", "8k to 128k by Llama 3 scaling", "scaling", "llama-3.1-8b"),
    ("Qwen3 8B with YaRN × 4", "the documented way to 128k", "scaling", "qwen3-8b-yarn"),
    ("gpt-oss 20B", "YaRN × 32, ramp bounds not rounded", "scaling", "gpt-oss-20b"),
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
        "learn": "How does RoPE work? Twelve steps, each with one picture, one sentence and one task.",
        "rotation": "What does rotating q and k do, and why does only the distance matter?",
        "frequencies": "What is the frequency of every pair, and which pairs never completed a turn in training?",
        "scaling": "What do YaRN, NTK, Llama 3 and LongRoPE do to this model, pair by pair?",
        "model": "This model needs a context of 128k: which command do you run, and what does each runtime compute?",
        "decay": "How does the score of a query and a key change with distance, and what do the bounds promise?",
        "axes": "How do rows, columns and frames rotate pairs in vision models, and what changes beyond their grid?",
        "attention": "How does position change the attention of a sentence: rotated, added, or absent?",
        "recall": "Does a model still find what it read with each scaling method, and which pairs does it need?",
        "heads": "Which pairs does a head of a real model use, and what would another method change?",
        "precision": "From which position on does rounding disturb this model, and what does each runtime round?",
        "kernels": "How exactly and how fast do kernels rotate q and k, here and on your machine?",
    }
)
page.words()
