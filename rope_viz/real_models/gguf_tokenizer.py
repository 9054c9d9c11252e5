"""Build a tokenizer from the keys of a GGUF file. Needs the `tokenizers` package.

How a text is cut into pieces before the merges: https://github.com/ggml-org/llama.cpp, src/llama-vocab.cpp.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats.gguf import GgufHeader

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
SPLITS = {
    "smollm": None,
    "gpt-2": "",
    "qwen2": QWEN2,
    "deepseek-r1-qwen": QWEN2,
    "llama-bpe": LLAMA3,
    "llama3": LLAMA3,
    "llama-v3": LLAMA3,
}
"""{value of tokenizer.ggml.pre: pattern; "" is GPT-2's own, None is GPT-2's after single digits}."""
BEGINS_WITH_BOS = ("llama-bpe", "llama3", "llama-v3")
CONTROL, USER_DEFINED = 3, 4


def make_tokenizer(header: GgufHeader) -> Any:
    """Return a `tokenizers.Tokenizer` for a header that was read with its long arrays.

    Raises `ValueError` without the package, and for a vocabulary that cannot be built here.
    """
    try:
        import tokenizers
        from tokenizers import decoders, models, normalizers, pre_tokenizers, processors
    except ImportError:
        raise ValueError("reading a text needs the tokenizers package: pip install 'rope-viz[gguf]'") from None
    keys = {name.removeprefix("tokenizer.ggml."): value for name, value in header.keys.items()}
    kind, pre = keys.get("model"), keys.get("pre")
    if kind != "gpt2" or pre not in SPLITS:
        raise ValueError(
            f"the tokenizer of the GGUF file is {short_repr(kind)} with {short_repr(pre)}, which is not built in: "
            f"byte-level BPE with {', '.join(SPLITS)} is"
        )
    tokens, merges, kinds = (keys.get(name) for name in ("tokens", "merges", "token_type"))
    if not is_texts(tokens) or not is_texts(merges) or any(" " not in merge for merge in merges):
        raise ValueError("the GGUF file has no lists of tokens and merges")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    try:
        model = models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=pre in BEGINS_WITH_BOS)
    except Exception as error:  # the package raises plain exceptions
        raise ValueError(f"the merges of the GGUF file do not fit its tokens: {error}") from None
    tokenizer = tokenizers.Tokenizer(model)
    split = SPLITS[pre]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)
    if split is None:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    elif split:
        first = pre_tokenizers.Split(tokenizers.Regex(split), behavior="isolated", invert=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, byte_level])
    else:
        tokenizer.pre_tokenizer = byte_level
    if split == QWEN2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    if isinstance(kinds, list) and len(kinds) == len(tokens):
        added = [
            tokenizers.AddedToken(token, special=kind == CONTROL, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind in (CONTROL, USER_DEFINED)
        ]
        tokenizer.add_tokens(added)
    begin = keys.get("bos_token_id")
    if keys.get("add_bos_token", pre in BEGINS_WITH_BOS) and isinstance(begin, int) and begin < len(tokens):
        name = tokens[begin]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{name}:0 $A:0", pair=f"{name}:0 $A:0 $B:1", special_tokens=[(name, begin)]
        )
    return tokenizer


def is_texts(value: Any) -> TypeGuard[list[str]]:
    """True for a list of texts that is not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)
