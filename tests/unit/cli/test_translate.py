import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dragoman import translate


class Service(BaseHTTPRequestHandler):
    """Answers in capitals; refuses Klingon as an engine pod refuses a pair."""

    def do_POST(self) -> None:
        received = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer: dict[str, Any]
        if received["target_lang"] == "tlh":
            status, answer = (
                422,
                {"error": {"code": "unsupported_pair", "message": "en to tlh is not served"}},
            )
        else:
            status, answer = 200, {"translation": [text.upper() for text in received["text"]]}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_translations_are_printed_a_line_each(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "fr", "one", "two"]) == 0
    assert capsys.readouterr().out == "ONE\nTWO\n"


def test_a_refusal_has_the_message_of_the_service(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", url, "--to", "tlh", "one"]) == 1
    assert "422: en to tlh is not served" in capsys.readouterr().err


def test_an_address_where_nothing_listens_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert translate.main(["--url", "http://127.0.0.1:1", "--to", "fr", "one"]) == 1
    assert "http://127.0.0.1:1 cannot be reached" in capsys.readouterr().err
