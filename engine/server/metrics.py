"""Prometheus metrics: counts and gauges are read from the engine when scraped, histograms are filled as tokens come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.choice import Delta
from engine.llm import LLM
from engine.server.stream import Stream

FIRST_TOKEN = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
BETWEEN_TOKENS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        at = self.registry
        self.rejected = Counter("engine_requests_rejected", "Requests refused because the queue was full", registry=at)
        self.finished = Counter("engine_requests_finished", "Choices by how they ended", ["reason"], registry=at)
        self.first_token = Histogram(
            "engine_time_to_first_token_seconds", "From acceptance to the first token", buckets=FIRST_TOKEN, registry=at
        )
        self.between_tokens = Histogram(
            "engine_inter_token_seconds", "Between two tokens of a choice", buckets=BETWEEN_TOKENS, registry=at
        )
        self.duration = Histogram(
            "engine_request_seconds", "From acceptance to the last token", buckets=FIRST_TOKEN, registry=at
        )
        self._requests = 0
        self._seconds = 0.0

    def watch(self, llm: LLM, num_open: Callable[[], int]) -> None:
        self.registry.register(_Engine(llm, num_open))

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def mean_request_seconds(self) -> float:
        return self._seconds / self._requests if self._requests else 0.0

    def note_delta(self, stream: Stream, delta: Delta) -> None:
        now = time.monotonic()
        if delta.tokens:
            before = stream.last_token.get(delta.index)
            (self.first_token if before is None else self.between_tokens).observe(now - (before or stream.accepted))
            stream.last_token[delta.index] = now
        if delta.finish_reason is not None:
            self.finished.labels(str(delta.finish_reason)).inc()
            self.duration.observe(now - stream.accepted)
            self._requests += 1
            self._seconds += now - stream.accepted


class _Engine(Collector):
    def __init__(self, llm: LLM, num_open: Callable[[], int]) -> None:
        self._llm = llm
        self._num_open = num_open

    def collect(self) -> Iterator[Metric]:
        llm = self._llm
        scheduler, statistics = llm.loop.scheduler, llm.loop.statistics
        blocks = scheduler.blocks
        gauges = {
            "engine_requests_open": (self._num_open(), "Requests accepted and not answered in full"),
            "engine_sequences_running": (len(scheduler.running), "Sequences in the batch"),
            "engine_sequences_waiting": (len(scheduler.waiting), "Sequences waiting for the batch"),
            "engine_kv_cache_usage_ratio": (blocks.num_used / blocks.num_blocks, "Blocks of the KV cache in use"),
        }
        counters = {
            "engine_prefix_cache_hit_tokens": (blocks.hits, "Prompt tokens found in the prefix cache"),
            "engine_prefix_cache_query_tokens": (blocks.queries, "Prompt tokens looked up in the prefix cache"),
            "engine_prompt_tokens": (statistics.prompt_tokens, "Prompt tokens computed"),
            "engine_output_tokens": (statistics.output_tokens, "Tokens sampled"),
            "engine_steps": (statistics.steps, "Steps of the engine"),
            "engine_preemptions": (scheduler.preemptions, "Sequences preempted because the KV cache was full"),
        }
        for name, (value, text) in gauges.items():
            yield GaugeMetricFamily(name, text, value=value)
        for name, (value, text) in counters.items():
            yield CounterMetricFamily(name, text, value=value)
        launches = CounterMetricFamily("engine_kernel_launches", "Launches by kernel", labels=["kernel"])
        for kernel, count in llm.kernel_launches.items():
            launches.add_metric([kernel], count)
        yield launches
