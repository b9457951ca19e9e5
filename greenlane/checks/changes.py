"""Which files a change may concern: what need not be looked at again keeps what was found there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from greenlane.checks.source.facts import Class, Facts
from greenlane.checks.source.project import Project

_MOST_NAMES = 60  # that mean something else than before; beyond, everything is looked at
_MOST_FILES = 0.5  # of the tree
_ABOUT_OTHERS = frozenset({"link-presence", "missing-include", "guard-missing-arm"})  # may hang on any file of a lane


def concerned(project: Project) -> set[str] | None:
    """Files whose findings may differ from the earlier run's; None for all of them."""
    changed = project.memory.changed
    if project.base is None or changed is None:
        return None
    names: set[str] = set()
    for path in changed:
        for view in project.views_of(path):
            old = project.old_facts(view, path)
            differing = None if old is None else _differing(project, old, project.facts(view, path))
            if differing is None:
                return None
            names |= differing
    if len(names) > _MOST_NAMES:
        return None
    files = _near(project, changed) | _speaking_of(project, changed)
    files |= {path for name in names for path in project.mentioning(name)}
    files &= set(project.read_files)
    return None if len(files) > max(8, _MOST_FILES * len(project.read_files)) else files


def _differing(project: Project, old: Facts, new: Facts) -> set[str] | None:
    """Names that mean something else now, or are mentioned now and were not; None where more than names changed."""
    if any(facts.errors or facts.gaps or facts.problem is not None for facts in (old, new)):
        return None
    if Counter(map(_shape, old.classes)) != Counter(map(_shape, new.classes)):
        return None
    if any(getattr(old, part) != getattr(new, part) for part in ("aliases", "imported", "namespaces", "using")):
        return None
    gone, come = _signatures(old) - _signatures(new), _signatures(new) - _signatures(old)
    names = {str(entry[0]) for entry in gone + come}
    names |= old.objects ^ new.objects
    names |= {entry.name for entry in old.callables} ^ {entry.name for entry in new.callables}
    if {(entry.name, entry.params) for entry in old.callables} != {
        (entry.name, entry.params) for entry in new.callables
    }:
        return None
    mentions = old.outside ^ new.outside
    return names | {
        name for name in mentions if any(project.names(view).has("functions", name) for view in project.views)
    }


def _shape(entry: Class) -> tuple[object, ...]:
    fields = tuple((field.name, field.type) for field in entry.fields)
    return entry.name, entry.scope, entry.bases, fields, entry.specialization


def _signatures(facts: Facts) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            function.name,
            function.scope,
            function.traits,
            tuple((param.type, param.name, param.default) for param in function.params),
            function.variadic,
            function.returns,
        )
        for function in facts.functions
    )


def _near(project: Project, changed: Iterable[str]) -> set[str]:
    """What reads the files, and what they read."""
    found = set(changed)
    for path in changed:
        for view in project.views_of(path):
            found.update(project.readers(view, path))
            found.update(view.reach(path))
    return found


def _speaking_of(project: Project, changed: frozenset[str]) -> set[str]:
    """Files whose findings name a place in the changed ones, or hang on what other files lack."""
    assert project.base is not None
    return {
        owner
        for owner, drafts in project.base.drafts.items()
        if any(
            draft.rule in _ABOUT_OTHERS
            or draft.file in changed
            or any(entry.file in changed for entry in draft.related)
            for draft in drafts
        )
    }
