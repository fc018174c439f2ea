"""The proxies that `overhead.py` compares: how each is started, each on one core, in front of the same upstream."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KEY = "sk-bench-0123456789"
PROXY_CORE, UPSTREAM_CORE = "1", "0"
LOAD_CORE = "2" if (os.cpu_count() or 1) > 2 else UPSTREAM_CORE
READY_S = 90.0
MESSAGE = {"role": "assistant", "content": "Die Katze schläft auf dem Sofa, und der Hund bellt."}
ANSWER = {
    **{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "european"},
    "choices": [{"index": 0, "finish_reason": "stop", "message": MESSAGE}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 14, "total_tokens": 34},
}

NGINX = """worker_processes 1; daemon off; pid {dir}/{name}.pid; error_log {dir}/{name}.err;
events {{ worker_connections 8192; }}
http {{ access_log off; keepalive_requests 1000000000; client_body_buffer_size 64k;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  {http}
}}
"""
UPSTREAM = """server {{ listen 127.0.0.1:{0}; listen 127.0.0.1:{1};
  location / {{ default_type application/json; return 200 '{2}'; }} }}"""
BALANCER = """upstream pods {{ least_conn; server 127.0.0.1:{0}; server 127.0.0.1:{1};
    keepalive 256; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{2};
    location / {{ proxy_pass http://pods; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""
HAPROXY = """global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:{2}
  default_backend pods
backend pods
  balance leastconn
  http-reuse always
  server one 127.0.0.1:{0}
  server two 127.0.0.1:{1}
"""
STATIC = """deployments:
- name: bench/european
  languages: [{{source: en, targets: [de, fr, es]}}, {{source: de, targets: [en]}}]
  replicas: ["127.0.0.1:{0}", "127.0.0.1:{1}"]
  maxInFlight: 1000
- name: bench/rest
  replicas: ["127.0.0.1:{0}"]
"""
LITELLM = """model_list:
- model_name: european
  litellm_params: {{model: openai/european, api_base: "http://127.0.0.1:{0}/v1", api_key: none}}
- model_name: european
  litellm_params: {{model: openai/european, api_base: "http://127.0.0.1:{1}/v1", api_key: none}}
general_settings: {{master_key: {2}}}
"""


@dataclass
class Proxy:
    """One that runs.

    Args:
        process: It, or the first of its processes.
        rate: Requests a second of the run at a fixed rate.
    """

    name: str
    port: int
    process: subprocess.Popen[bytes]
    rate: int = 500

    def tree(self) -> list[int]:
        """Its processes."""
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            children = Path(f"/proc/{pid}/task/{pid}/children")
            todo += [int(child) for child in children.read_text().split()]
        return found

    def cpu_s(self) -> float:
        """Seconds of CPU that its threads have used; exact, where `stat` counts ticks of 10 ms."""
        nanoseconds = 0
        for pid in self.tree():
            for thread in Path(f"/proc/{pid}/task").iterdir():
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
        return nanoseconds / 1e9

    def memory_mb(self) -> float:
        """Its proportional set size; shared pages count in part."""
        kilobytes = 0
        for pid in self.tree():
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            kilobytes += sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        return round(kilobytes / 1024, 1)


def start(directory: Path, core: str, name: str, *command: str) -> subprocess.Popen[bytes]:
    """A process bound to one core, its output in a file."""
    with (directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen(["taskset", "-c", core, *command], stdout=log, stderr=log)


def await_ready(port: int, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Wait until a path answers."""
    end_s = time.monotonic() + READY_S
    while time.monotonic() < end_s:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("POST", path, body, dict(headers or {}))
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise RuntimeError(f"nothing answers on port {port}")


def upstream(directory: Path, ports: tuple[int, int]) -> subprocess.Popen[bytes]:
    """nginx, which answers at once."""
    body = json.dumps(ANSWER, ensure_ascii=False).replace("'", "")
    return _nginx(directory, UPSTREAM_CORE, "upstream", UPSTREAM.format(*ports, body))


def _nginx(directory: Path, core: str, name: str, http: str) -> subprocess.Popen[bytes]:
    path = directory / f"{name}.conf"
    path.write_text(NGINX.format(dir=directory, name=name, http=http))
    return start(directory, core, name, "nginx", "-c", str(path))


def nginx(directory: Path, ports: tuple[int, int], port: int) -> Proxy:
    """least_conn, kept connections."""
    return Proxy("nginx", port, _nginx(directory, PROXY_CORE, "nginx", BALANCER.format(*ports, port)))


def haproxy(directory: Path, ports: tuple[int, int], port: int) -> Proxy:
    """leastconn, one thread."""
    path = directory / "haproxy.cfg"
    path.write_text(HAPROXY.format(*ports, port))
    return Proxy("haproxy", port, start(directory, PROXY_CORE, "haproxy", "haproxy", "-f", str(path)))


def ours(
    directory: Path,
    ports: tuple[int, int],
    port: int,
    admin_port: int,
    *,
    deployments: str = STATIC,
    keys: bool = True,
    busy_poll_ms: int = 0,
    program: Sequence[str] = ("-m", "dragoman", "router"),
    checkout: Path | None = None,
) -> Proxy:
    """With metrics and language routing, and with keys by default; this checkout's, or another one's."""
    (directory / "static.yaml").write_text(deployments.format(*ports))
    flags = [f"--static={directory}/static.yaml", "--host=127.0.0.1", f"--port={port}"]
    flags += [f"--admin-port={admin_port}", "--lame-duck-s=0", f"--busy-poll-ms={busy_poll_ms}"]
    if keys:
        (directory / "keys").mkdir(exist_ok=True)
        (directory / "keys/bench").write_text(KEY)
        flags.append(f"--keys-dir={directory}/keys")
    python = sys.executable if checkout is None else str(checkout / ".venv/bin/python")
    name = "dragoman router" if checkout is None else f"dragoman router of {checkout.name}"
    name += f", polling {busy_poll_ms} ms" if busy_poll_ms else ""
    return Proxy(name, port, start(directory, PROXY_CORE, f"ours-{port}", python, *program, *flags))


def vllm_router(
    directory: Path, ports: tuple[int, int], port: int, program: Path, metrics_port: int
) -> Proxy:
    """power_of_two; no keys, no languages."""
    urls = [f"http://127.0.0.1:{each}" for each in ports]
    flags = ["--worker-urls", *urls, "--policy", "power_of_two", "--host", "127.0.0.1", "--port", str(port)]
    flags += ["--prometheus-port", str(metrics_port), "--log-level", "error"]
    return Proxy("vllm-router", port, start(directory, PROXY_CORE, "vllm-router", str(program), *flags))


def litellm(directory: Path, ports: tuple[int, int], port: int, program: Path) -> Proxy:
    """One worker, a master key, no database."""
    path = directory / "litellm.yaml"
    path.write_text(LITELLM.format(*ports, KEY))
    flags = ["--config", str(path), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    return Proxy("litellm", port, start(directory, PROXY_CORE, "litellm", str(program), *flags), rate=20)
