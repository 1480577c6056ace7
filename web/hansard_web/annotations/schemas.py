"""The bodies of annotations as OpenAPI describes them."""

from __future__ import annotations

from pydantic import Field

from hansard_web.annotations.dataset_schemas import DatasetLine as DatasetLine
from hansard_web.api import schemas as models


class AnnotationAnswer(models.Answer):
    """One annotation as it is now."""

    annotation: models.Annotation


class AnnotationList(models.Page):
    """Annotations, the newest first."""

    items: list[models.Annotation]
    pruned: int | None = Field(
        description="of the run or step asked for, how many that had ended are not kept; else null"
    )
