"""Show a campaign while it runs: a matrix below the lines at a terminal, lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import json
import threading

from tpudeploy.cli.live import Live
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import events
from tpudeploy.features.campaign import view
from tpudeploy.features.campaign.progress import Board, CampaignEvent, CellProgress
from tpudeploy.features.campaign.proposal import CampaignPlan
from tpudeploy.features.campaign.service import recorded_servers
from tpudeploy.ports import Clock
from tpudeploy.views import jsonl
from tpudeploy.views.events import Repeats

# Of the events of its deployments, those that say how a request or a change came out.
_LASTING = (
    events.ChangeDone,
    events.ChangeFailed,
    events.Reclaimed,
    events.Gone,
    events.Warned,
    events.LockWaiting,
)
_PASSING = frozenset({CellProgress.MEASURING})  # the table shows them, and lines do without


class CampaignLines:
    """Prints a line for each change, or with --json an object. Several threads may call it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()
        self._repeats = Repeats()

    def tell(self, event: events.Event) -> None:
        with self._lock:
            if self._terminal.as_json:
                self._terminal.document(jsonl.line(event))
            elif isinstance(event, _LASTING) and (text := self._repeats.line(event, self._terminal.paint)) is not None:
                self._terminal.talk(text)

    def progress(self, event: CampaignEvent, board: Board) -> None:
        del board
        with self._lock:
            if self._terminal.as_json:
                self._terminal.document(json.dumps(event_line(event), ensure_ascii=False))
            elif event.state not in _PASSING or event.point is None:
                self._terminal.talk(view.line(event, self._terminal.paint))


class CampaignLive(Live):
    """Draws the matrix of a campaign below its lines, and the requests that are open below that."""

    def __init__(self, terminal: Terminal, clock: Clock, plan: CampaignPlan) -> None:
        super().__init__(terminal, clock)
        self._plain_terminal = terminal
        self._servers = recorded_servers(plan)
        self._matrix_lock = threading.Lock()
        self._latest: tuple[CampaignEvent, Board] | None = None

    def tell(self, event: events.Event) -> None:
        if isinstance(event, (*_LASTING, events.Outlook, events.ChangeLeft)):
            super().tell(event)

    def progress(self, event: CampaignEvent, board: Board) -> None:
        with self._matrix_lock:
            self._latest = (event, board)
        if event.state not in _PASSING and event.state is not CellProgress.STARTING:
            self.say(view.line(event, self._plain_terminal.paint))

    def _rows(self) -> tuple[str, ...]:
        with self._matrix_lock:
            latest = self._latest
        if latest is None or not self._plain_terminal.is_in_foreground:
            return super()._rows()
        event, board = latest
        columns, lines = self._plain_terminal.size
        rows = view.matrix(self._servers, board, self._plain_terminal.paint, columns - 1)
        return ("", *rows[: lines // 2], view.status(event), *super()._rows())


def event_line(event: CampaignEvent) -> dict[str, object]:
    """Return the object of a change in the stream of --json."""
    streams, context, output = (None, None, None) if event.point is None else event.point.sizes
    return {
        "v": jsonl.VERSION,
        "type": "campaign_progress",
        "at": event.at,
        "deployment": event.lane,
        "server": event.label,
        "repeat": event.repeat,
        "streams": streams,
        "context": context,
        "output": output,
        "state": event.state,
        "text": event.text,
        "requests_per_second": event.requests_per_second,
        "usd": event.spent,
        "done": event.ended,
        "total": event.total,
        "seconds_left": event.seconds_left,
    }
