"""What annotations refuse.

AnnotationRefused
├── InvalidAnnotation       fields that do not fit                                   (HTTP 400)
├── TextNotRetained         the retention mode keeps no content                      (HTTP 409)
├── AnnotationNotCurrent         it was withdrawn or replaced, or a span tells it         (HTTP 409)
├── TooMany             a run or step has as many as it can have                 (HTTP 409)
└── SecretInName        a tag, a name or a label that looks like a secret        (HTTP 400)
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_store.errors import StoreError


class AnnotationRefused(StoreError):
    """An annotation that is not written, or not withdrawn, as requested."""

    code = "annotation_refused"


class InvalidAnnotation(AnnotationRefused):
    """Fields that do not fit; each as place and problem, without values."""

    code = "bad_request"

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        where, what = problems[0]
        what = what.removeprefix("Value error, ")
        # What is wrong with the whole has the model's name as its place.
        super().__init__(what if where[:1].isupper() else f"{where}: {what}")
        details = [{"at": at, "problem": problem} for at, problem in problems]
        self.details = {"problems": details}


class TextNotRetained(AnnotationRefused):
    """Better refused than kept without what it says."""

    code = "annotation_text_not_retained"

    def __init__(self) -> None:
        super().__init__(
            "this store keeps no content (retention metadata_only), so it keeps no notes, "
            "explanations and expected outputs; tags, and scores without them, it does"
        )


class AnnotationNotCurrent(AnnotationRefused):
    """Somebody was first; `state` is how it stands now."""

    code = "annotation_not_current"

    def __init__(self, annotation_id: str, *, state: str) -> None:
        super().__init__(f"the annotation {annotation_id} was {state} already")
        self.details = {"annotation_id": annotation_id, "state": state}


class TooMany(AnnotationRefused):
    """A bound, so that a program that scores in a loop cannot fill the store with one step."""

    code = "annotation_too_many"

    def __init__(self, *, most: int) -> None:
        super().__init__(
            f"it has {most:,} annotations that stand already, the most there can be; "
            "withdraw some first"
        )


class SecretInName(AnnotationRefused):
    """What lists are narrowed by is stored as it is, so it must not hold a secret."""

    code = "annotation_secret"

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"the {field} looks like a secret ({rule}); say it in other words")
