"""The container image of a lane: made when its inputs have changed, then entered."""

from __future__ import annotations

from greenlane.executors.docker import DockerExecutor
from greenlane.images.build import BuildFailed, ensure, layers
from greenlane.images.inputs import inputs
from greenlane.lanes.context import Context, Ended
from greenlane.record.model import Outcome


def run(context: Context) -> Ended:
    executor = context.executor
    assert isinstance(executor, DockerExecutor)
    reason: str | None
    if context.wanted_image is not None:
        context.image, reason = context.wanted_image, "the record's own"
    else:
        try:
            context.image, built = _ensure(context, executor)
        except BuildFailed as failed:
            return Ended(Outcome.FAIL, str(failed).splitlines()[0])
        reason = None if built else "unchanged"
    executor.image = context.image
    executor.start()
    context.image_files = layers(executor.daemon.client, context.image)
    return Ended(Outcome.PASS, reason, {"image": context.image})


def _ensure(context: Context, executor: DockerExecutor) -> tuple[str, bool]:
    assert context.lane.image is not None
    wanted = inputs(context.lane.image, context.tree.path)
    daemon = executor.daemon
    return ensure(
        daemon.client, daemon.base_url, wanted, context.folder.state, context.log.line, cancel=context.cancel.is_set
    )
