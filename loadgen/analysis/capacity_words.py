"""A plan's figures as a person reads them."""

from loadgen.analysis.capacity_certain import censored, fewest
from loadgen.analysis.capacity_model import Capacity, Demand, Fleet, Offer


def load_words(value: float, unit: str) -> str:
    """`12.3 requests/s` or `84 users`."""
    if unit == "users":
        return "1 user" if round(value) == 1 else f"{value:.0f} users"
    return f"{value:.3g} requests/s"


def capacity_words(offer: Offer) -> str:
    """`233 users (200 to 251) per server, 4 GPUs (3 to 4) in all`, or the ceiling where no demand was given.

    A lower bound of what a server carries makes an upper bound of GPUs: `233 users or more …, 4 GPUs or fewer`.
    """
    if offer.capacity is not None:
        if offer.capacity.per_server is None:
            return "no load within the objectives"
        more = censored(offer)
        text = f"{load_words(offer.capacity.per_server, offer.capacity.unit)}{' or more' if more else ''}"
        text += f"{interval_words(offer.capacity)} per server"
        return f"{text}, {gpu_words(offer.fleet, at_most=more)} in all" if offer.fleet else text
    if offer.ceiling.by_estimate is None:
        return "no measured level within the objectives"
    sure = offer.ceiling.surely
    if sure == offer.ceiling.by_estimate:
        certain = "surely"
    else:
        certain = f"surely only up to {sure:g}" if sure else "not yet resolved"
    more_levels = ", the highest level measured" if offer.ceiling.open_ended else ""
    return f"up to {offer.ceiling.by_estimate:g} requests in flight ({certain}{more_levels})"


def interval_words(capacity: Capacity) -> str:
    """` (200 to 251)`, ` (surely 200)`, ` (251 at most)`; empty where the interval has no end or adds nothing."""
    low, high = (_bare(bound, capacity.unit) for bound in (capacity.surely, capacity.at_most))
    if low and high:
        return f" ({low} to {high})" if low != high else ""
    if low and capacity.surely is not None:
        return " (surely)" if capacity.surely == capacity.per_server else f" (surely {low})"
    return f" ({high} at most)" if high else ""


def _bare(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f}" if unit == "users" else f"{value:.3g}"


def gpu_words(fleet: Fleet, *, at_most: bool) -> str:
    """`4 GPUs (3 to 5)`; `4 GPUs or fewer` where a server may carry more than was measured."""
    text = gpus(fleet.gpus)
    least, most = fleet.gpus_least, fleet.gpus_most
    if at_most:
        text += "" if fewest(fleet) else " or fewer"
        if most is not None and most > fleet.gpus:
            return f"{text} (surely {most} or fewer)"
    elif least is not None and most is not None and least < most:
        return f"{text} ({least} to {most})"
    near = fleet.gpus_if_less
    return f"{text} ({near} at 5 % less per server)" if near is not None and near > fleet.gpus else text


def gpus(count: int) -> str:
    """`1 GPU`, `2 GPUs`."""
    return "1 GPU" if count == 1 else f"{count} GPUs"


def demand_words(demand: Demand | None) -> str:
    """`400 users who think for 20 s`, `12 requests/s`; with the mix where there is one."""
    if demand is None:
        return "none given: highest load only"
    if demand.users is not None:
        text = f"{demand.users} users who think for {demand.think_s:g} s between requests"
    else:
        text = f"{demand.rate_per_s or 0.0:.3g} requests/s"
    if demand.source:
        text += f" ({demand.source})"
    if demand.shares:
        text += ": " + ", ".join(f"{share:.0%} {name}" for name, share in demand.shares)
    return text
