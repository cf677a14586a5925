"""A stand-in for a vLLM server, run as a real child process; each flag is one way to misbehave."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CONFIG_LINE = (
    "INFO core.py: Initializing a V1 LLM engine (v0.32.0) with config: model='fake', dtype=torch.float32, "
    "enforce_eager=True, compilation_config={'cudagraph_mode': <CUDAGraphMode.NONE: 0>}"
)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--models-after", type=float, default=0.0)
    parser.add_argument("--completions-after", type=float, default=0.0)
    parser.add_argument("--exit-after", type=float)
    parser.add_argument("--die-at-completion", action="store_true")
    parser.add_argument("--no-listen", action="store_true")
    parser.add_argument("--ignore-signals", action="store_true")
    parser.add_argument("--grandchild", choices=["plain", "own-session"])
    parser.add_argument("--pid-file")
    parser.add_argument("--speculates", action="store_true")
    parser.add_argument("--status", type=int, default=503)
    return parser.parse_known_args()[0]


ARGS = parse()
STARTED = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
        pass

    def reply(self, status: int, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        age = time.monotonic() - STARTED
        if self.path == "/health":
            self.reply(200, "")
        elif self.path == "/v1/models" and age >= ARGS.models_after:
            self.reply(200, {"data": [{"id": "fake", "max_model_len": 512}]})
        elif self.path == "/version":
            self.reply(200, {"version": "0.32.0"})
        elif self.path == "/metrics":
            names = ["vllm:num_requests_running 0"] + ["vllm:spec_decode_num_drafts_total 0"] * ARGS.speculates
            self.reply(200, "\n".join(names))
        else:
            self.reply(404, {"error": {"message": "not here"}})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if ARGS.die_at_completion:
            say("AssertionError: Synthetic acceptance not supported with CPU sampling")
            os._exit(3)
        if time.monotonic() - STARTED < ARGS.completions_after:
            self.reply(ARGS.status, {"error": {"message": "still loading"}})
        else:
            self.reply(200, {"choices": [{"text": " four"}]})


def main() -> None:
    if ARGS.ignore_signals:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [os.getpid()]
    if ARGS.grandchild:
        code = (
            "import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)]; "
            "print('ok', flush=True); time.sleep(600)"
        )
        own = ARGS.grandchild == "own-session"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=own, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()  # it ignores the signals from here on
        pids.append(child.pid)
    if ARGS.pid_file:
        # Written whole and then named, so that a reader never sees half of it.
        draft = Path(ARGS.pid_file + ".new")
        draft.write_text(" ".join(str(pid) for pid in pids), encoding="utf-8")
        draft.replace(ARGS.pid_file)
    say(CONFIG_LINE)
    say(f"environment: {os.environ.get('FAKE_SETTING')}")
    say(f"arguments: {sys.argv[1:]}")
    if ARGS.exit_after is not None:
        time.sleep(ARGS.exit_after)
        say("RuntimeError: no room for the KV cache")
        sys.exit(7)
    if ARGS.no_listen:
        while True:
            time.sleep(600)
    try:
        ThreadingHTTPServer(("127.0.0.1", ARGS.port), Handler).serve_forever()
    except KeyboardInterrupt:
        say("clean shutdown")


if __name__ == "__main__":
    main()
