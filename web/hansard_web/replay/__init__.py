"""Making a model call again: exactly, with changes, or from there on.

`start` in `engine` is the one way in, for the API, the command line, the SDK and the page. What is
read is the stored step, its payloads and its compile; never the event log.
"""

from __future__ import annotations

from typing import Final

SERVICE: Final = "hansard-replay"  # `service.name` of the runs that replays make
