"""Templates of everything rendered for people: the shipped ones, and before them a project's own of the same name.

A template may come with a stranger's change, so it runs in Jinja's sandbox and reads no file outside of its folder.
Every value is escaped for the form that is rendered, unless a filter such as `code` has made it safe already.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, StrictUndefined, TemplateNotFound
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from greenlane.errors import MatrixError
from greenlane.lanes import untrusted
from greenlane.matrix import content
from greenlane.matrix.loading import compile_matrix
from greenlane.record.git import git
from greenlane.report import markdown

MAX_BYTES = 1024 * 1024  # of one template
Read = Callable[[str], bytes | None]


class Templates:
    """Renders templates by name; `own` are a project's."""

    def __init__(self, own: BaseLoader | None = None) -> None:
        loader = ChoiceLoader([*([own] if own else []), folder_loader(shipped())])
        self._for_html = _environment(loader, autoescape=True)
        self._for_markdown = _environment(loader, autoescape=True, finalize=_as_markdown)
        self._for_markdown.filters |= {
            "code": _safe(markdown.code),
            "block": _safe(markdown.block),
            "text": _safe(markdown.text),
        }
        self._for_text = _environment(loader, autoescape=False)

    def render(self, name: str, **values: Any) -> str:
        """The template filled with the values. Raises MatrixError with file and line when the template is broken."""
        try:
            return self._environment_of(name).get_template(name).render(**values)
        except TemplateSyntaxError as error:
            raise _broken(error.filename or name, error.lineno, error.message or "not a template") from error
        except TemplateNotFound as error:
            raise _broken(*_place(error, name), f"there is no template {error}") from error
        except (TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _broken(*_place(error, name), _said(error)) from error

    def _environment_of(self, name: str) -> Environment:
        endings = {".html": self._for_html, ".md": self._for_markdown}
        return endings.get(Path(name).suffix, self._for_text)


def of_project(matrix: Path) -> Templates:
    """The templates that the matrix in the work tree names, before the shipped ones."""
    named = _named(content.read(matrix), str(matrix))
    if named is None:
        return Templates()
    folder = matrix.parent / named
    if not folder.is_dir():
        raise MatrixError(f"{matrix}: templates: {named}: there is no such folder; make it, or remove the key")
    return Templates(folder_loader(folder))


def of_commit(repository: Path, commit: str | None, matrix: str) -> Templates:
    """Those of a commit: a change is never told of in the words of its own templates."""
    shown = git(repository, "cat-file", "-p", f"{commit}:{matrix}", check=False) if commit else None
    named = _named(shown.stdout, matrix) if shown and shown.returncode == 0 else None
    if named is None:
        return Templates()
    folder = f"{commit}:{(Path(matrix).parent / named).as_posix()}"

    def read(name: str) -> bytes | None:
        found = git(repository, "cat-file", "blob", f"{folder}/{name}", check=False)
        return found.stdout if found.returncode == 0 else None

    return Templates(_Loader(read, folder))


def _named(matrix: bytes, name: str) -> str | None:
    """The folder that a matrix names; most name none, and expanding thousands of lanes for that takes long."""
    return compile_matrix(matrix, name).matrix.templates if b"templates" in matrix else None


@cache
def shipped() -> Path:
    """In a wheel they lie inside the package, in the repository beside it."""
    package = Path(__file__).parents[1]
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


class _Loader(BaseLoader):
    """Templates by whatever reads them; `place` names it in messages."""

    def __init__(self, read: Read, place: str) -> None:
        self.read, self.place = read, place

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        found = None if ".." in template.split("/") else self.read(template)
        if found is None:
            raise TemplateNotFound(template)
        place = f"{self.place}/{template}"
        if len(found) > MAX_BYTES:
            raise _broken(place, 1, f"larger than {MAX_BYTES} bytes")
        try:
            return found.decode(), place, lambda: True
        except UnicodeDecodeError as error:
            line = found.count(b"\n", 0, error.start) + 1
            raise _broken(place, line, f"not UTF-8 text (byte 0x{found[error.start]:02x})") from error


def folder_loader(folder: Path) -> BaseLoader:
    """The regular files of a folder; no link is followed."""
    return _Loader(lambda name: untrusted.read_bytes(folder, name), str(folder))


def _environment(loader: BaseLoader, **options: Any) -> Environment:
    return ImmutableSandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        **options,
    )  # fmt: skip


def _as_markdown(value: Any) -> Any:
    """What no filter has made safe is a stranger's prose."""
    return value if isinstance(value, Markup) else Markup(markdown.text(value))


def _safe(render: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *arguments: Markup(render(*arguments))


def _place(error: Exception, name: str) -> tuple[str, int]:
    """The innermost line of a template that was being rendered."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).suffix in {".html", ".md", ".css", ".js", ".yml"}]
    return (inside[-1].filename, inside[-1].lineno or 1) if inside else (name, 1)


def _said(error: Exception) -> str:
    if isinstance(error, SecurityError):
        return f"not allowed in a template: {error}"
    return str(error) or type(error).__name__


def _broken(file: str, line: int, message: str) -> MatrixError:
    return MatrixError(f"{file}:{line}: {' '.join(message.split())}; mend the template or remove it")
