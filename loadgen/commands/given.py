"""Options that several commands take, each with its help once."""

from pathlib import Path
from typing import Annotated

import typer

Against = Annotated[str, typer.Option(help="The profile to compare with.")]
Engine = Annotated[str, typer.Option(help="auto, docker, process, simulator or url.")]
Urls = Annotated[str | None, typer.Option(help="Running servers: baseline=URL,ngram=URL.")]
Model = Annotated[str | None, typer.Option(help="Target model: a name or a folder.")]
Hardware = Annotated[str | None, typer.Option(help="The simulator's hardware preset.")]
Levels = Annotated[str | None, typer.Option(help="Requests in flight: 1,2,4,8,16,32.")]
Repeats = Annotated[int | None, typer.Option(help="Cells per level; none below 3 has an interval.")]
Quick = Annotated[bool, typer.Option("--quick", help="Levels 1,4,16 and short cells; indicative.")]
MaxTokens = Annotated[int | None, typer.Option(help="Cap of each output.")]
Window = Annotated[float | None, typer.Option(help="Seconds that each cell measures.")]
Seed = Annotated[int, typer.Option(help="Prompts, sampling and level order follow from it.")]
OutputLengths = Annotated[str | None, typer.Option(help="Caps of the outputs, drawn likewise.")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Load processes: beyond one core.")]
VllmVersion = Annotated[str | None, typer.Option(help="The simulator: behave as this vLLM, such as 0.26.")]
VllmCommand = Annotated[str | None, typer.Option(help="How a local vLLM starts.", envvar="VLLM_COMMAND")]
ServerArgs = Annotated[list[str] | None, typer.Option(help="An argument for every server (repeatable).")]
ServerEnv = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for every server, or NAME to pass ours on (repeatable).")
]
StartTimeout = Annotated[float, typer.Option(help="Seconds a server may take to answer.")]
ProfilesFolder = Annotated[Path, typer.Option("--profiles", help="Folder of profiles.")]
Runs = Annotated[Path, typer.Option(help="The folder of the runs.")]
Objective = Annotated[str | None, typer.Option(help="What is best: throughput or tpot.")]
Slos = Annotated[list[str] | None, typer.Option(help="Only within a limit: ttft_p99=500ms (repeatable).")]
Margin = Annotated[float | None, typer.Option(help="What still counts as no worse: 0.02 is 2 %.")]
Progress = Annotated[bool, typer.Option("--json", help="Progress as JSON lines on stderr, summary on stdout.")]
Diagnose = Annotated[
    bool, typer.Option("--diagnose", help="A short cell per profile and workload more: tokens per chunk.")
]
InputLengths = Annotated[
    str | None, typer.Option(help="Prompt lengths drawn per prompt: uniform:200-800, lognormal:500,0.5.")
]
