"""Writes dashboards/grafana/*.json; with --check says which are stale and which metrics nobody has, and exits 1."""

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tools.dashboards import break_even, health, live
from tools.dashboards.names import unknown_names

GRAFANA = "11.6.0"
"""The release whose schema the SDK writes; later ones read it."""
FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "grafana"


def texts() -> dict[str, str]:
    """File name → what it must hold."""
    made: dict[str, Dashboard] = {
        "speculation-live.json": live.build(),
        "break-even.json": break_even.build(),
        "load-generator.json": health.build(),
    }
    return {name: _text(builder) for name, builder in made.items()}


def _text(builder: Dashboard) -> str:
    plain = json.loads(json.dumps(builder.build(), cls=JSONEncoder))
    for number, panel in enumerate(plain["panels"], start=1):
        # Without its version Grafana takes a panel's options for those of an old release, and converts them.
        panel |= {"id": number, "pluginVersion": GRAFANA}
    # A number would collide with another dashboard's; Grafana gives its own.
    return json.dumps({"id": None, **plain}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> int:
    """0 if all files are written, or are what they must be."""
    stale = [name for name, text in texts().items() if not _holds(FOLDER / name, text)]
    if "--check" in sys.argv[1:]:
        faults = [f"dashboards/grafana/{name} is stale; run make dashboards" for name in stale]
        faults += unknown_names()
        for fault in faults:
            print(fault)
        return 1 if faults else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(texts()[name], encoding="utf-8")
        print(f"dashboards/grafana/{name} is written")
    return 0


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
