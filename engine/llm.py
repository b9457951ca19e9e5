"""The engine from Python: `LLM(model).generate(prompts)`. Start reading here.

A model file becomes weights on a device (`models/`), text becomes token ids (`tokenizer/`), requests become sequences
that the scheduler lets into the batch (`scheduler.py`), and the loop (`loop.py`) runs step after step on the core.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine import config as configuration
from engine.block_manager import BlockManager
from engine.choice import Choice, Listener
from engine.errors import RequestError, UnsupportedModel
from engine.loading import load_model, make_runner, open_source
from engine.loop import Loop
from engine.outputs import Completion, PromptScores, RequestOutput
from engine.sampling_params import SamplingParams, choice_seed
from engine.scheduler import Scheduler
from engine.sequence import FinishReason
from engine.sequence import Sequence as RunningSequence

Prompt = str | Sequence[int]


@dataclass(frozen=True)
class Arrival:
    """A request joins before engine step `step`, and is aborted once it has `abort_after` tokens."""

    step: int = 0
    abort_after: int | None = None


class LLM:
    """A loaded model that generates. Keyword arguments are the fields of `engine.config.EngineConfig`."""

    def __init__(self, model: str = "smollm2", **settings: Any) -> None:
        started = time.perf_counter()
        self.config = configuration.make({"model": model, **settings})
        source = open_source(self.config)
        self.path = source.path
        self.architecture = source.architecture
        self.tokenizer = source.tokenizer
        self.context_length = min(source.architecture.context_length, self.config.max_context or 1 << 62)
        self.model = load_model(source, self.config)
        self.runner = make_runner(self.model, self.config, self.context_length)
        capabilities = self.model.device.capabilities
        self.loop = Loop(self._scheduler(), self.runner, lagged=capabilities.async_sampled_token_readback)
        self.load_s = time.perf_counter() - started
        self._ids = itertools.count(1)  # drawn from several threads by the server

    def _scheduler(self) -> Scheduler:
        num_blocks = self.runner.kv_bytes // (self.runner.kv_bytes_per_token * self.config.block_size)
        return Scheduler(
            BlockManager(num_blocks, self.config.block_size, prefix_cache=self.config.prefix_cache),
            max_num_seqs=self.config.max_num_seqs,
            max_num_batched_tokens=self.config.max_num_batched_tokens,
            context_length=self.context_length,
        )

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        arrivals: Sequence[Arrival] | None = None,
        on_token: Callable[[int], Listener] | None = None,
    ) -> list[RequestOutput]:
        """One output per prompt, in order. `on_token(i)` is told of every token of prompt i as it comes."""
        listed = as_prompts(prompts)
        chosen = _params_for(listed, params)
        schedule = list(arrivals) if arrivals is not None else [Arrival()] * len(listed)
        if len(schedule) != len(listed):
            raise RequestError(f"{len(schedule)} arrivals for {len(listed)} prompts; give one for each")
        token_ids = [self.encode(prompt) for prompt in listed]
        requests = [self.request(ids, one) for ids, one in zip(token_ids, chosen, strict=True)]
        listeners = [on_token(index) if on_token else None for index in range(len(requests))]
        self._run(requests, schedule, listeners)
        return [request.output for request in requests]

    def chat(self, messages: Sequence[Mapping[str, Any]], params: SamplingParams | None = None) -> RequestOutput:
        return self.generate([self.encode_chat(messages)], params)[0]

    def score(self, prompt: Prompt, continuation: Sequence[int]) -> PromptScores:
        """Teacher forcing: entry i speaks of continuation[i] after everything before it."""
        return self.score_all([(prompt, continuation)])[0]

    def score_all(self, pairs: Sequence[tuple[Prompt, Sequence[int]]]) -> list[PromptScores]:
        prefixes = [self.encode(prompt) for prompt, _ in pairs]
        whole = [[*prefix, *continuation] for prefix, (_, continuation) in zip(prefixes, pairs, strict=True)]
        outputs = self.generate(whole, SamplingParams(max_tokens=1, prompt_logprobs=True))
        return [_tail(output, len(prefix)) for output, prefix in zip(outputs, prefixes, strict=True)]

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt. An empty text is the model's begin- or end-of-text token, as servers do."""
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt) or self.tokenizer.empty_prompt()
        for token in prompt:
            if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < self.architecture.vocab_size:
                raise RequestError(
                    f"prompt token {token!r} is outside the vocabulary of {self.architecture.vocab_size}; check the ids"
                )
        return list(prompt)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], **extra: Any) -> list[int]:
        template = self.tokenizer.chat_template
        if template is None:
            raise UnsupportedModel(f"{self.path}: the model has no chat template; use a plain prompt")
        return self.tokenizer.encode(template.render(messages, **extra))

    def request(self, prompt_ids: list[int], params: SamplingParams, **extra: Any) -> Request:
        """The sequences of one request, not yet running. `extra` are fields of Sequence: priority, client, grammar."""
        params.check_vocabulary(self.architecture.vocab_size)
        grammars = extra.pop("grammars", [None] * params.n)
        seed = params.with_seed()
        stop_ids = frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self.tokenizer.stop_ids)
        max_tokens = params.max_tokens or self.most_tokens(len(prompt_ids))
        sequences: list[RunningSequence] = []
        for index in range(params.n):
            sequence = RunningSequence(
                id=next(self._ids),
                token_ids=list(prompt_ids),
                num_prompt_tokens=len(prompt_ids),
                max_tokens=max_tokens,
                params=params,
                seed=choice_seed(seed, index),
                sampling=params.for_core(choice_seed(seed, index)),
                stop_ids=stop_ids,
                leader=sequences[0] if index else None,
                grammar=grammars[index],
                **extra,
            )
            self.loop.scheduler.check_fits(sequence)
            sequences.append(sequence)
        scores = PromptScores() if params.prompt_logprobs else None
        completions = [Completion(index, sequence.seed) for index, sequence in enumerate(sequences)]
        return Request(sequences, RequestOutput(sequences[0].id, prompt_ids, completions, scores))

    def most_tokens(self, num_prompt_tokens: int) -> int:
        """How many tokens may follow such a prompt: the context's rest, or what the KV cache holds."""
        blocks = self.loop.scheduler.blocks
        capacity = min(self.context_length, blocks.num_blocks * blocks.block_size + 1)
        return max(1, capacity - num_prompt_tokens)

    def submit(self, request: Request, listener: Listener | None = None) -> None:
        for index, (sequence, completion) in enumerate(zip(request.sequences, request.output.completions, strict=True)):
            choice = Choice(sequence, completion, self.tokenizer, listener)
            self.loop.add(choice, request.output.prompt_scores if index == 0 else None)

    def _run(self, requests: list[Request], schedule: list[Arrival], listeners: list[Listener | None]) -> None:
        coming = deque(sorted(range(len(requests)), key=lambda index: schedule[index].step))
        to_abort = {index for index, arrival in enumerate(schedule) if arrival.abort_after is not None}
        step = 0
        while coming or self.loop.has_work:
            while coming and schedule[coming[0]].step <= step:
                index = coming.popleft()
                self.submit(requests[index], listeners[index])
            if self.loop.has_work:
                self.loop.step()
            for index in [i for i in to_abort if len(requests[i].output.token_ids) >= (schedule[i].abort_after or 0)]:
                self.abort(requests[index])
                to_abort.remove(index)
            step += 1
        for request in requests:
            request.note_costs()

    def abort(self, request: Request, reason: FinishReason = FinishReason.ABORT, error: str | None = None) -> None:
        for sequence in request.sequences:
            self.loop.abort(sequence, reason, error)

    @property
    def kernel_launches(self) -> dict[str, int]:
        from engine import _core

        return _core.kernel_launches()


@dataclass(frozen=True)
class Request:
    sequences: list[RunningSequence]
    output: RequestOutput

    def note_costs(self) -> None:
        self.output.num_cached_tokens = self.sequences[0].num_cached_tokens
        self.output.preemptions = sum(sequence.preemptions for sequence in self.sequences)


def as_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """A text or a list of ids is one prompt; a list of those are many."""
    if isinstance(prompts, str) or (prompts and isinstance(prompts[0], int)):
        return [prompts]  # type: ignore[list-item]
    return list(prompts)  # type: ignore[arg-type]


def _params_for(
    prompts: Sequence[Prompt], params: SamplingParams | Sequence[SamplingParams] | None
) -> list[SamplingParams]:
    if params is None or isinstance(params, SamplingParams):
        return [params or SamplingParams()] * len(prompts)
    if len(params) != len(prompts):
        raise RequestError(f"{len(params)} sampling parameters for {len(prompts)} prompts; give one, or one for each")
    return list(params)


def _tail(output: RequestOutput, prefix: int) -> PromptScores:
    scores = output.prompt_scores
    assert scores is not None
    start = prefix - 1
    return PromptScores(scores.logprobs[start:], scores.best[start:], scores.runner_up[start:])
