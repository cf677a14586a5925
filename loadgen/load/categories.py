"""Which outcome an HTTP status or a broken exchange means."""

from loadgen.load.arrivals import TIMEOUT_ENDS, End
from loadgen.load.record import Outcome

_BY_STATUS = {
    400: Outcome.INVALID_REQUEST,
    401: Outcome.UNAUTHORIZED,
    403: Outcome.UNAUTHORIZED,
    404: Outcome.NOT_FOUND,
    413: Outcome.INVALID_REQUEST,
    422: Outcome.INVALID_REQUEST,
    429: Outcome.OVERLOAD,
    503: Outcome.OVERLOAD,
}


def status_outcome(status: int) -> Outcome:
    """The failure category of an HTTP status other than 200."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Outcome.SERVER_ERROR if status >= 500 else Outcome.CLIENT_ERROR


def broken_outcome(ended: End) -> Outcome:
    """The category of an exchange that did not end as HTTP says it should."""
    if ended is End.CONNECT_FAILED:
        return Outcome.CONNECT_ERROR
    if ended is End.CANCELLED:
        return Outcome.CANCELLED
    return Outcome.TIMEOUT if ended in TIMEOUT_ENDS else Outcome.TRANSPORT_ERROR
