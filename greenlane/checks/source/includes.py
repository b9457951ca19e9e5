"""Where an #include leads: a file of the project, a vendor's header, or somebody else's."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable

from greenlane.checks.source import vendors
from greenlane.checks.source.directives import Include

DEFAULT_ROOTS = (".", "include", "src")


class Resolver:
    """Finds included files as the compiler does; what no root leads to is matched by its end, where that is unique."""

    def __init__(self, files: Iterable[str], roots: Iterable[str], allowed: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._roots = tuple(roots) or DEFAULT_ROOTS
        self._allowed = frozenset(allowed)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in self._files:
            self._by_name[path.rpartition("/")[2]].append(path)
        self._answers: dict[tuple[str, str, bool], str | None] = {}

    def resolve(self, source: str, include: Include) -> str | None:
        folder = source.rpartition("/")[0]
        key = (folder, include.target, include.quoted)
        if key not in self._answers:
            self._answers[key] = self._find(folder, include)
        return self._answers[key]

    def _find(self, folder: str, include: Include) -> str | None:
        places = (folder, *self._roots) if include.quoted else self._roots
        for place in places:
            path = posixpath.normpath(posixpath.join(place, include.target))
            if path in self._files:
                return path
        return self._by_end(include)

    def _by_end(self, include: Include) -> str | None:
        target = include.target.lstrip("./")
        if vendors.of_header(target) or not (include.quoted or "/" in target):
            return None
        found = [path for path in self._by_name.get(target.rpartition("/")[2], ()) if path.endswith("/" + target)]
        if len(found) > 1:
            found = [path for path in found if vendors.of_path(path) in self._allowed]
        return found[0] if len(found) == 1 else None


_STANDARD = frozenset(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes
    climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg
    cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution expected
    filesystem format forward_list fstream functional future initializer_list iomanip ios iosfwd iostream
    istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric optional
    ostream print queue random ranges ratio regex scoped_allocator semaphore set shared_mutex source_location
    span sstream stack stdexcept stop_token streambuf string string_view strstream syncstream system_error
    thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
    version assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h
    setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    tgmath.h threads.h time.h uchar.h wchar.h wctype.h""".split()
)


def is_standard(target: str) -> bool:
    """Whether a header is one of the C or C++ library's own."""
    return target in _STANDARD
