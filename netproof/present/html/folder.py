"""A report's folder: pages from templates and charts, in place as a whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import functools
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.present import terminal
from netproof.present.document import Part
from netproof.present.html.report import MAIN
from netproof.present.wording import file_name, visible
from netproof.verdict.file_names import MANIFEST

POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:"
)
"""Only files beside the page may be loaded; Vega compiles its expressions."""


VEGA_LITE = "6.4"
"""Version of Vega-Lite that draws pages and files."""


_LEAST_PART = 60
"""Characters from which a part of a chart or of its data is on the page once, for all charts."""

_parts: ContextVar[dict[str, int]] = ContextVar("parts of charts on the page, with their places")


def bundle_name() -> str:
    """Return the name of the file with Vega's scripts."""
    return f"vega-{VEGA_LITE}-{version('vl-convert-python')}.js"


def page_of(
    title: str,
    parts: Sequence[Part],
    *,
    heading: str = "",
    when: str = "",
    back: str = "",
    files: Sequence[str] = (),
) -> str:
    """Return a page; ``back``: the page that it belongs to; ``files``: other forms of charts."""
    _parts.set({})
    values = {"title": title, "parts": parts, "heading": heading or title, "when": when}
    return environment().get_template("page.html").render(**values, back=back, files=files)


@functools.cache
def environment() -> Environment:
    """Return the environment of all templates: all is escaped that is not markup already."""
    made = Environment(
        loader=PackageLoader("netproof.present.html"),
        autoescape=True,
        # A misspelt name stops the page, instead of leaving a gap in it.
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else visible(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["policy"] = POLICY
    made.globals["scripts"] = (bundle_name(), "report.js")
    made.filters["chart_json"] = chart_json
    made.globals["chart_parts"] = lambda: _escaped(f"[{','.join(_parts.get())}]")
    return made


def chart_json(specification: dict[str, Any]) -> Markup:
    """Return a chart for the page; ``chart_parts`` has what charts, and their data, share."""
    parts = _parts.get({})

    def shortened(value: Any) -> Any:
        if isinstance(value, dict):
            value = {key: shortened(one) for key, one in value.items()}
        elif isinstance(value, list | tuple):
            value = list(map(shortened, value))
        elif not isinstance(value, str):
            return value
        text = _compact(value)
        return value if len(text) < _LEAST_PART else {"part": parts.setdefault(text, len(parts))}

    return _escaped(_compact({key: shortened(one) for key, one in specification.items()}))


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _escaped(text: str) -> Markup:
    """Return JSON for a script element that is not run, which no text within can end."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


FORMAT = 1
"""Format of the manifest; raised when its keys change."""

ABANDONED_AFTER_S = 86400
"""Age at which a killed writer's remains beside the folder are removed."""

_PIXELS = 2
"""Pixels of a PNG per pixel of the chart, for sharp prints and dense screens."""

_ASIDE = "netproof-report"
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of Linux's renameat2."""
_HERE = -100
"""Its ``AT_FDCWD``: paths are relative to the process's folder."""
_NO_EXCHANGE = (errno.ENOENT, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""Errors where there is no earlier folder, and of file systems that cannot exchange, as NFS."""


def write_page(folder: Path, page: Callable[[], str]) -> Path:
    """Write one page into a folder, replacing an earlier one, and return its path.

    Raises NetproofError where the folder holds other things, or cannot be written.
    """
    try:
        with replacing(folder) as new, terminal.working("writing the page"):
            write_assets(new / "assets", folder / "assets")
            (new / MAIN).write_text(page(), encoding="utf-8")
    except OSError as error:
        raise NetproofError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return folder / MAIN


def beside(session: Path, word: str) -> Path:
    """Return the folder for output on a session: beside its report, or here if stored."""
    if session.is_file():
        return session.with_name(f"{session.stem}-{word}")
    return Path(f"{file_name(session.name)}-{word}")


def draw(specification: dict[str, Any], path: Path) -> None:
    """Draw a chart in a file of the path's suffix: html, png, svg or pdf."""
    form = path.suffix[1:]
    known: dict[str, dict[str, Any]] = {"html": {"bundle": True}, "png": {"scale": _PIXELS}}
    convert = getattr(vl_convert, f"vegalite_to_{form}")
    made = convert(specification, vl_version=VEGA_LITE, **known.get(form, {}))
    path.write_bytes(made.encode() if isinstance(made, str) else made)


def write_assets(folder: Path, before: Path) -> None:
    """Write style and scripts; reuse the bundle of Vega, which takes seconds, from before."""
    folder.mkdir()
    for name in ("report.css", "report.js"):
        shutil.copyfile(str(files("netproof.present.html") / "assets" / name), folder / name)
    bundle = bundle_name()
    if (before / bundle).exists():
        shutil.copyfile(before / bundle, folder / bundle)
        return
    # Its stub lacks the default of the first parameter.
    made = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg]
    # As a module, since a plain script would share its names with the page.
    (folder / bundle).write_text(f"(() => {{\n{made}\n}})();\n", encoding="utf-8")


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder beside ``folder``, which it replaces as a whole once all is written.

    ``folder`` has to be new, empty, or an earlier report, whose files go; others in it stay.
    Raises NetproofError where it is no report, or the process is in it, and OSError.
    """
    target = folder.resolve()
    here = Path.cwd()
    if target in (here, *here.parents):
        raise NetproofError(
            f"{target}: you are in it, and a report takes its folder's place as a whole; name a"
            " folder within it"
        )
    _written_before(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    aside = _alongside(target)
    aside.mkdir()
    try:
        yield aside
        files = sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())
        document = {"format": FORMAT, "files": [*files, MANIFEST]}
        (aside / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        for path in (*aside.rglob("*"), aside):
            disk.sync(path)
        _link_foreign(target, aside)
        _put_in_place(aside, target)
        disk.sync(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _written_before(folder: Path) -> tuple[Path, ...]:
    """Return the files of the report in ``folder``, relative to it; none if it is new or empty.

    Raises NetproofError where it holds other things, OSError where it is no folder.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return ()
    manifest = folder / MANIFEST
    try:
        document = disk.json_file(manifest)
        if document["format"] != FORMAT:
            raise NetproofError(
                f"{manifest}: is of format {document['format']}, and this netproof knows {FORMAT};"
                " name a new folder"
            )
        files = tuple(Path(name) for name in document["files"])
    except FileNotFoundError:
        some = min(path.name for path in folder.iterdir())
        raise NetproofError(
            f"{folder}: is not empty and no report, it has {some!r} and no {MANIFEST}; name a new"
            " folder"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise NetproofError(f"{manifest}: cannot be read: {error!r}; name a new folder") from error
    strays = [path for path in files if path.is_absolute() or ".." in path.parts]
    if strays:
        raise NetproofError(f"{manifest}: names {strays[0]}, which is not in the folder")
    return files


def _link_foreign(target: Path, aside: Path) -> None:
    """Link the old folder's files that netproof did not write into the new one."""
    if not target.exists():
        return
    shutil.copymode(target, aside)
    own = set(_written_before(target))
    for path in sorted(target.rglob("*")):
        place = path.relative_to(target)
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                (aside / place).mkdir(parents=True, exist_ok=True)
            continue
        if place in own:
            continue
        linked = aside / place
        if linked.exists():
            raise NetproofError(
                f"{path}: is not of the earlier report, and the new one has a file of this name;"
                " move it away, or name a new folder"
            )
        linked.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, linked, follow_symlinks=False)
        except OSError:
            shutil.copy2(path, linked, follow_symlinks=False)


def _put_in_place(aside: Path, target: Path) -> None:
    """Replace ``target`` by ``aside`` at once; an old ``target`` stays in ``aside``."""
    try:
        return _exchange(aside, target)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
    before = _alongside(target, "before")
    with suppress(FileNotFoundError):
        target.rename(before)
    aside.rename(target)
    with suppress(FileNotFoundError):
        before.rename(aside)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))


def _alongside(target: Path, word: str = _ASIDE) -> Path:
    return target.with_name(f".{target.name}.{word}-{secrets.token_hex(6)}")


def _sweep(target: Path) -> None:
    """Remove the remains of killed writers beside the folder, once they are a day old."""
    for path in target.parent.glob(f".{target.name}.{_ASIDE}-*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(path, ignore_errors=True)
