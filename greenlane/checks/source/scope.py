"""What a name may mean at a place: the functions that C++'s look-up would find there, as far as a lane's files tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from greenlane.checks.source.facts import Class, Facts, Function, Param, Trait
from greenlane.checks.source.names import LaneNames, Lazy
from greenlane.checks.source.view import LaneView

Candidate = tuple[str, Function]

_NOISE = re.compile(r"\b(?:const|volatile|struct|class|typename|constexpr|static|inline|mutable|register)\b|[*&]|\s+")
_ANY = Param("", "", "", 0, 0, False)
_SMART = re.compile(r"(?:std::)?(?:unique_ptr|shared_ptr)<(.*)>")


class Scopes:
    """Look-up in one lane. An empty answer means that something unknown may be meant."""

    def __init__(
        self,
        view: LaneView,
        names: LaneNames,
        facts: Callable[[str], Facts],
        functions: Lazy[Candidate],
        classes: Lazy[Class],
    ) -> None:
        self._view = view
        self._names = names
        self._facts = facts
        self._functions = functions
        self._classes = classes
        self._units = view.unit_set
        self._hierarchies: dict[str, set[str] | None] = {}

    def _visible(self, path: str, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those that the file can see: a unit sees what it includes, a header may see anything."""
        if path not in self._units:
            return list(candidates)
        reach = self._view.reach(path)
        return [candidate for candidate in candidates if candidate[0] in reach]

    def _is_imported(self, path: str, name: str) -> bool:
        """Whether a using-declaration gives a name more meanings than the index knows."""
        importing = self._names.files("imported", name)
        return bool(importing) and (
            path not in self._units or any(file in self._view.reach(path) for file in importing)
        )

    def plain(self, path: str, facts: Facts, inside: Function | None, name: str) -> Sequence[Candidate]:
        visible = self._visible(path, self._functions.of(name))
        if self._is_imported(path, name):
            return ()
        if self._is_object(path, name):
            return self._constructors(name, visible) if len(self._classes.of(name)) == 1 else ()
        around = inside.scope if inside is not None else ""
        using = self._using(path)
        free = [entry for entry in visible if not entry[1].has(Trait.MEMBER)]
        if inside is not None and inside.has(Trait.MEMBER):
            own = self.hierarchy(around)
            if own is None:
                return (
                    ()
                    if any(entry[1].has(Trait.MEMBER) for entry in visible) or not self._is_plain_namespace(around)
                    else free
                )
            members = [
                entry for entry in visible if entry[1].has(Trait.MEMBER) and entry[1].scope.rpartition("::")[2] in own
            ]
            if members:
                return members
        near = [entry for entry in free if _encloses(entry[1].scope, around) or entry[1].scope in using]
        return free if near else ()

    def _is_plain_namespace(self, scope: str) -> bool:
        return scope.rpartition("::")[2] not in self._classes

    def _using(self, path: str) -> set[str]:
        files = self._view.reach(path) if path in self._units else (path,)
        return {name for file in files for name in self._facts(file).using}

    def _is_object(self, path: str, name: str) -> bool:
        declaring = self._names.files("objects", name)
        if not declaring:
            return False
        return path not in self._units or any(file in self._view.reach(path) for file in declaring)

    def _constructors(self, name: str, visible: Iterable[Candidate]) -> Sequence[Candidate]:
        """Constructors of the only class of a name, where it declares some and inherits none; a copy takes one."""
        entry = self._classes[name][0]
        found = [item for item in visible if item[1].has(Trait.CONSTRUCTOR) and not item[1].has(Trait.QUALIFIED)]
        if (
            not found
            or entry.bases
            or entry.specialization
            or any(len(item[1].params) == 1 or item[1].has(Trait.TEMPLATE) for item in found)
        ):
            return ()
        return [*found, ("", found[0][1]._replace(params=(found[0][1].params or (_ANY,))[:1], variadic=False))]

    def qualified(self, path: str, scope: str, name: str) -> Sequence[Candidate]:
        if scope == "::":
            wanted = ""
        else:
            first, separator, rest = scope.partition("::")
            targets = self._targets(path, first)
            if len(targets) > 1 or (not targets and self._is_aliased(path, first)):
                return ()
            wanted = next(iter(targets), first) + separator + rest
        visible = self._visible(path, self._functions.of(name))
        found = [entry for entry in visible if _ends_with(entry[1].scope, wanted)]
        last = wanted.rpartition("::")[2]
        if self._is_imported(path, name) or (
            last in self._classes and any(entry.bases for entry in self._classes[last])
        ):
            return ()
        return [] if any(entry[1].has(Trait.CONSTRUCTOR) for entry in found) else found

    def _targets(self, path: str, name: str) -> set[str]:
        """What a namespace alias stands for."""
        files = self._view.reach(path) if path in self._units else (path,)
        return {target for file in files for alias, target in self._facts(file).aliases if alias == name}

    def _is_aliased(self, path: str, name: str) -> bool:
        """Whether a qualifier is a type or an alias that may lead anywhere."""
        return name not in self._classes and self._is_object(path, name) and not self._names.has("namespaces", name)

    def receiver_class(self, path: str, facts: Facts, inside: Function | None, receiver: str) -> str | None:
        """The project's class that a receiver is surely of."""
        if inside is None or not receiver:
            return None
        if receiver == "this":
            return inside.scope.rpartition("::")[2] or None
        types = {local.type for local in inside.locals if local.name == receiver}
        types |= {param.type for param in inside.params if param.name == receiver}
        if not types and inside.has(Trait.MEMBER):
            owner = inside.scope.rpartition("::")[2]
            types = {
                field.type for entry in self._classes.of(owner) for field in entry.fields if field.name == receiver
            }
        if len(types) != 1:
            return None
        return self._class_of(path, next(iter(types)), inside.scope)

    def _class_of(self, path: str, written: str, around: str) -> str | None:
        """The only class of a name, where the scope that is written or around leads to it."""
        plain = _NOISE.sub("", written)
        smart = _SMART.fullmatch(plain)
        scope, _, name = (smart.group(1) if smart else plain).rpartition("::")
        entries = self._classes.of(name)
        if len(entries) != 1 or entries[0].specialization:
            return None
        own = entries[0].scope
        reachable = _ends_with(own, scope) if scope else _encloses(own, around) or own in self._using(path)
        return name if reachable else None

    def hierarchy(self, scope: str) -> set[str] | None:
        """A class and all of its bases; None where one of them is not the project's."""
        name = scope.rpartition("::")[2]
        if name not in self._hierarchies:
            self._hierarchies[name] = self._climb(name)
        return self._hierarchies[name]

    def _climb(self, start: str) -> set[str] | None:
        waiting, found = [start], set[str]()
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            entries = self._classes.of(name)
            if len(entries) != 1 or entries[0].specialization:
                return None
            found.add(name)
            waiting += [base.partition("<")[0].rpartition("::")[2].strip() for base in entries[0].bases]
        return found

    def members(self, owner: str, name: str) -> Sequence[Candidate] | None:
        """Members of a class and its bases; None where more may hide behind the name."""
        classes = self.hierarchy(owner)
        if self._names.has("imported", name):
            return None
        if classes is None or any(field.name == name for own in classes for field in self._classes[own][0].fields):
            return None
        return [
            entry
            for entry in self._functions.of(name)
            if entry[1].has(Trait.MEMBER) and entry[1].scope.rpartition("::")[2] in classes
        ]

    def only_class(self, name: str) -> Class | None:
        entries = self._classes.of(name)
        return entries[0] if len(entries) == 1 else None


def _encloses(outer: str, inner: str) -> bool:
    return not outer or inner == outer or inner.startswith(outer + "::")


def _ends_with(scope: str, wanted: str) -> bool:
    return scope == wanted if not wanted else scope == wanted or scope.endswith("::" + wanted)
