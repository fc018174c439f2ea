"""What a failed download says where a store's message is passed on."""

from dragoman_service.download.errors import reason
from dragoman_service.engine.vllm import failures
from dragoman_service.engine.vllm.start_report import Failure

MESSAGE = """Server error '501 Not Implemented' for url 'https://cdn.example/blob?X-Amz-Date=1&X-Amz-Signature=secret'
For more: https://cdn.example/errors?code=501"""
SHOWN = "Server error '501 Not Implemented' for url 'https://cdn.example/blob' For more: https://cdn.example/errors"


def test_queries_of_urls_are_left_out() -> None:
    assert reason(OSError(MESSAGE), "org/m") == f"the model org/m cannot be downloaded: {SHOWN}"
    of_engine = failures.reason(Failure((("OSError", MESSAGE),)), "org/m")
    assert of_engine == f"the engine could not load org/m: OSError: {SHOWN}"
