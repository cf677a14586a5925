"""A plan's figures as a person reads them."""

from loadgen.analysis.capacity_model import Demand, Offer


def load_words(value: float, unit: str) -> str:
    """`12.3 requests/s` or `84 users`."""
    return f"{value:.0f} users" if unit == "users" else f"{value:.3g} requests/s"


def capacity_words(offer: Offer) -> str:
    """`12.3 requests/s per server (3 GPUs)`, or the ceiling where no demand was given."""
    if offer.capacity is not None:
        if offer.capacity.per_server is None:
            return "no load within the objectives"
        beyond = " or more" if offer.capacity.limited_by == "measured levels" else ""
        text = f"{load_words(offer.capacity.per_server, offer.capacity.unit)}{beyond} per server"
        return f"{text}, {offer.fleet.gpus} GPUs in all" if offer.fleet else text
    if offer.ceiling.by_estimate is None:
        return "no measured level within the objectives"
    sure = offer.ceiling.surely
    if sure == offer.ceiling.by_estimate:
        certain = "surely"
    else:
        certain = f"surely only up to {sure:g}" if sure else "not yet resolved"
    more = ", the highest level measured" if offer.ceiling.open_ended else ""
    return f"up to {offer.ceiling.by_estimate:g} requests in flight ({certain}{more})"


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
