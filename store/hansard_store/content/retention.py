"""What a retention mode lets the store hold: of a text, a name, arguments, a payload.

Every noun of the store asks this one class; what is hashed is hashed with the key of the store.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes, canonical_json
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.errors import InvalidProposal
from hansard_store.audit.event_types import Content
from hansard_store.audit.events import keyed_hash
from hansard_store.audit.hash_chain import content_of
from hansard_store.content.payloads import Retained
from hansard_store.database.data_folder import DataFolder
from hansard_store.ingest.redactions import RemovedSecret

MAX_BYTES: Final = 1 << 20  # of arguments, as canonical JSON
MAX_ARGUMENTS: Final = 500  # nobody looks at more, and each is held against the description
MAX_NAME: Final = 200  # characters of a tool's, an agent's, a channel's, an argument's name
MAX_TEXT: Final = 20_000  # characters of a note, a reason, a description
BINARY: Final = "application/octet-stream"
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,80}(?:;[ \w.=+\"'-]{1,80})?", re.ASCII)
_MARKER: Final = re.compile(r"‹(?:redacted|withheld):[^›\s]{1,80}›")


@dataclass(frozen=True, slots=True)
class Kept:
    """Arguments as they are stored."""

    arguments: Json
    hash: str  # of the exact ones
    is_redacted: bool
    is_exact: bool  # the stored ones are the exact ones


@dataclass(frozen=True, slots=True)
class Retention:
    """Decides what is stored; the key is the store's."""

    mode: RetentionMode
    redactor: Redactor
    key: bytes

    @classmethod
    def of(cls, folder: DataFolder, mode: RetentionMode | str) -> Retention:
        """Return that of a store, in a mode."""
        key = folder.key()
        return cls(RetentionMode(mode), Redactor(key), key)

    @property
    def is_full(self) -> bool:
        """Whether everything is stored as it came."""
        return self.mode is RetentionMode.FULL_PAYLOADS

    @property
    def is_metadata_only(self) -> bool:
        """Whether no content is stored at all."""
        return self.mode is RetentionMode.METADATA_ONLY

    def keep(self, arguments: Mapping[str, Any]) -> Kept:
        """Return what is stored of arguments; raises InvalidProposal for what cannot be bound."""
        exact = _bound(arguments)
        _showable(arguments)
        digest = keyed_hash(self.key, exact)
        text = canonical_json(arguments)
        if _MARKER.search(text):
            raise InvalidProposal(
                "arguments",
                "the arguments hold the marker of a redaction, which is not the value it stands "
                "for; give the value itself",
            )
        if self.is_metadata_only:
            # A name may be a secret as well. Two that become one are shown as one.
            withheld = {self._redacted(name): _withheld(value) for name, value in arguments.items()}
            return Kept(withheld, digest, is_redacted=bool(withheld), is_exact=not withheld)
        clean = text if self.is_full else self._redacted(text)
        stored = json.loads(clean)
        if not isinstance(stored, dict):
            stored = {"$redacted": stored}
        elif stored.keys() == arguments.keys():
            stored = {name: stored[name] for name in arguments}  # in the order of the call
        is_redacted = clean != text
        return Kept(stored, digest, is_redacted, not is_redacted and _bound(stored) == exact)

    def hash_of(self, arguments: Mapping[str, Any]) -> str:
        """Return the keyed hash of exact arguments."""
        return keyed_hash(self.key, _bound(arguments))

    def words(self, name: str, text: str) -> str:
        """Return what a person wrote, word for word but for secrets."""
        if len(text) > MAX_TEXT:
            raise InvalidProposal(name, f"the {name} has {len(text):,} characters, of {MAX_TEXT:,}")
        if self.is_full:
            return _writable(text)
        return _writable(self.redactor.redact_text(text).text)

    def content_text(self, name: str, text: str) -> str:
        """Return what a program wrote: without secrets, or withheld."""
        if self.is_metadata_only:
            return f"‹withheld:{len(text.encode('utf-8', 'surrogatepass'))}›"
        return self.words(name, text)

    def name(self, what: str, text: str) -> str:
        """Return a name; raises InvalidProposal for what is none."""
        if not text.strip() or len(text) > MAX_NAME or not text.isprintable():
            raise InvalidProposal(
                what, f"the {what} is 1 to {MAX_NAME} printable characters, not {text[:80]!r}"
            )
        return text if self.is_full else _clean(self.redactor, text)

    def clean_text(self, text: str) -> str:
        """Return a name, an id or a reason without secrets."""
        if not text or self.is_full:
            return text
        return _clean(self.redactor, text) if len(text) <= MAX_NAME else self._redacted(text)

    def clean_texts(self, texts: Iterable[str]) -> list[str]:
        """Return several of them."""
        return [self.clean_text(one) for one in texts]

    def hash_text(self, text: str) -> str:
        """Return a keyed hash of a text that is stored elsewhere; "" for none."""
        if not text:
            return ""
        return "hmac-sha256:" + hmac.digest(self.key, text.encode(), hashlib.sha256).hex()

    def reference(self, value: Any) -> str | None:
        """Return a keyed hash of any value, None where it has no canonical form."""
        try:
            return keyed_hash(self.key, canonical_bytes(value))
        except (TypeError, ValueError, RecursionError):
            return None

    def content(self, name: str, value: Any) -> Content:
        """Return what an event is to refer to; without secrets already."""
        return content_of(name, value)

    def media_type(self, sent: object) -> str:
        """Return the media type that a sender gives; of anything that is none, that of bytes."""
        if not isinstance(sent, str) or not _MEDIA_TYPE.fullmatch(sent):
            return BINARY
        return BINARY if self.redactor.scan_bytes(sent.encode()) else sent

    def payload(self, data: bytes, media_type: str) -> Retained:
        """Return the bytes that may be stored; in metadata_only none."""
        if self.is_metadata_only:
            return Retained(None, self.mode.value)
        if self.is_full:
            return Retained(data)
        clean, findings = self.redactor.redact_bytes(data, media_type)
        if not findings:
            return Retained(data)
        counts: Counter[str] = Counter()
        for finding in findings:
            counts[finding.rule] += finding.count
        removed = [RemovedSecret(rule, "body", count) for rule, count in counts.items()]
        return Retained(clean, self.mode.value, removed)

    def payload_to_send(self, data: bytes, media_type: str, *, is_clean: bool) -> bytes | None:
        """Return a payload's bytes without secrets; None where no content is stored."""
        if self.is_metadata_only:
            return None
        if self.is_full or is_clean:
            return data
        return self.redactor.redact_bytes(data, media_type).data

    def _redacted(self, text: str) -> str:
        return self.redactor.redact_text(text).text


@lru_cache(maxsize=1024)
def _clean(redactor: Redactor, name: str) -> str:
    """Return a name or id without secrets: the same few names come with every call of a tool, and
    its id once before and once after it."""
    return redactor.redact_text(name).text


def _bound(arguments: Mapping[str, Any]) -> bytes:
    """Return bytes that are equal for equal arguments only.

    Canonical JSON tags what JSON cannot say, `{"$float": "nan"}`; arguments that hold such a tag
    literally are distinguished by doubling the `$`. All others hash as they do in policy checks.
    """
    if not isinstance(arguments, Mapping):
        raise InvalidProposal("arguments", "arguments are an object: names and values")
    try:
        data = canonical_bytes(_escaped(arguments))
    except TypeError as error:
        raise InvalidProposal("arguments", f"the arguments are no JSON: {error}") from None
    except ValueError:
        raise InvalidProposal(
            "arguments", "the arguments hold a number of too many digits"
        ) from None
    except RecursionError:
        raise InvalidProposal("arguments", "the arguments are nested too deeply") from None
    if len(data) > MAX_BYTES:
        raise InvalidProposal(
            "arguments", f"the arguments have {len(data):,} bytes, of {MAX_BYTES:,}"
        )
    return data


def _showable(arguments: Mapping[str, Any]) -> None:
    """Raise InvalidProposal for more arguments, or longer names, than a person can be shown."""
    if len(arguments) > MAX_ARGUMENTS:
        raise InvalidProposal(
            "arguments", f"there are {len(arguments):,} arguments, of {MAX_ARGUMENTS:,}"
        )
    longest = max(map(len, arguments), default=0)
    if longest > MAX_NAME:
        raise InvalidProposal(
            "arguments", f"the name of an argument has {longest:,} characters, of {MAX_NAME:,}"
        )


def _escaped(value: Any) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            # JSON would write the number 1 and the text "1" alike.
            raise InvalidProposal("arguments", "names in the arguments are texts")
        return {
            f"${key}" if key.startswith("$") else key: _escaped(one) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_escaped(one) for one in value]
    return value


def _withheld(value: Any) -> str:
    return f"‹withheld:{len(canonical_bytes(value))}›"


def _writable(text: str) -> str:
    """Return a text that UTF-8 can say: halves of surrogate pairs become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
