"""`trainer_state.json`, the file that a save of the Hugging Face Trainer is complete with (watch.4)."""

from __future__ import annotations

from publish.domain.json_document import integer_at, parse_object


def global_step(content: bytes) -> int | None:
    """The `global_step` of a whole document; None: the document is cut off before its end.

    Raises FormatError, whose text is the fault alone, for anything else.
    """
    document = parse_object(content)
    return None if document is None else integer_at(document, "global_step")
