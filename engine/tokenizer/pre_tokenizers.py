"""How text is cut into words before byte-pair merges, by the name a GGUF file gives in `tokenizer.ggml.pre`.

Each pattern cuts every piece the one before left; what a pattern does not match stays a piece of its own.
"""

from __future__ import annotations

from tokenizers import Regex, pre_tokenizers

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_CONTRACTIONS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_TAIL = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_TAIL}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_TAIL}"

PATTERNS: dict[str, tuple[str, ...]] = {
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    "gpt-2": (_GPT2,),
    "smollm": (r"\p{N}", _GPT2),
    "qwen2": (_QWEN2,),
    "llama-bpe": (_LLAMA3,),
}
ALIASES = {
    "gpt2": "gpt-2", "olmo": "gpt-2", "mpt": "gpt-2", "jais": "gpt-2", "trillion": "gpt-2",
    "starcoder": "smollm", "refact": "smollm", "command-r": "smollm", "codeshell": "smollm", "exaone": "smollm",
    "stablelm2": "qwen2", "deepseek-r1-qwen": "qwen2", "hunyuan": "qwen2", "megrez": "qwen2",
    "llama3": "llama-bpe", "llama-v3": "llama-bpe", "falcon3": "llama-bpe", "pixtral": "llama-bpe",
}  # fmt: skip
# Whole words found in the vocabulary are taken without merging.
IGNORE_MERGES = {"llama-bpe"}
ADDS_BOS = {"llama-bpe"}  # where the file doesn't say


def canonical(name: str) -> str | None:
    """The key of PATTERNS, or None for a pre-tokenizer that this engine doesn't know."""
    name = ALIASES.get(name, name)
    return name if name in PATTERNS else None


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    cuts = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in PATTERNS[name]]
    return pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
