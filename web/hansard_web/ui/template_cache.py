"""Compiled templates kept beside their sources, as Python keeps compiled modules."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType
from typing import Final

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache

from hansard_store.database.private_folders import make_private

_FINGERPRINT_CHARS: Final = 12


class TemplateCache(FileSystemBytecodeCache):
    """Keeps what Jinja compiled in the templates' `__pycache__`, or where PYTHONPYCACHEPREFIX says.

    Jinja compares the source's checksum before it takes a compiled template. What else decides how
    one is compiled (`made_by`: filters and options; the version of Jinja) is part of the file's
    name. Where the folder cannot be written, or PYTHONDONTWRITEBYTECODE is set, nothing is kept.
    """

    def __init__(self, templates: Path, *, made_by: Iterable[Path]) -> None:
        own = sha256(jinja2.__version__.encode())
        for path in made_by:
            own.update(path.read_bytes())
        folder = Path(cache_from_source(str(templates / "template.py"))).parent
        mark = f"{sys.implementation.cache_tag}-{own.hexdigest()[:_FINGERPRINT_CHARS]}"
        super().__init__(str(folder), f"%s.{mark}.template")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept; what cannot be read is compiled again."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # a damaged file may raise any: SystemError, AttributeError …
            bucket.reset()
        if not isinstance(bucket.code, CodeType):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template for the next process; never fails."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            make_private(Path(self.directory))  # what stands in it is run
            super().dump_bytecode(bucket)
