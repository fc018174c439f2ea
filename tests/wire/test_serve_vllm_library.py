"""The core as a library, in a script of its own, on real vLLM and the demo model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.servers import descendants, wait_until_gone

DEMO_MODEL = Path(__file__).parents[2] / "examples" / "demo-model"

SCRIPT = """
import asyncio, json, sys
from dragoman_service import AsyncVLLMTranslationProvider

async def main() -> None:
    provider = AsyncVLLMTranslationProvider(
        model_name=sys.argv[1], max_num_seqs=4, supported_language_pairs=[("en", "fr"), ("de", "en")],
        device="cpu", cache_dir=sys.argv[2],
    )
    await provider.initialize_engine()
    text = "The museum will close tomorrow. Where is the swimming pool?"
    try:
        result = {
            "one": await provider.translate(text, "en", "fr"),
            "detected": await provider.translate("Claire schläft, weil sie müde ist.", None, "en"),
            "batch": await provider.translate_batch([text, "The cat sleeps."], "en", "fr"),
            "stream": [piece async for piece in provider.stream(text, "en", "fr")],
        }
        print(json.dumps(result), flush=True)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await provider.aclose()

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.vllm
@pytest.mark.timeout(400)
@pytest.mark.skipif(not (DEMO_MODEL / "model.safetensors").is_file(), reason="the demo model is not there")
def test_a_script_translates_without_a_server_and_leaves_no_process_when_killed(tmp_path: Path) -> None:
    script, errors = tmp_path / "script.py", tmp_path / "errors"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), str(DEMO_MODEL), str(tmp_path / "cache")]
    with (
        errors.open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        message = next((json.loads(line) for line in process.stdout if line.startswith('{"one"')), None)
        started = descendants(process.pid)
        process.kill()
    assert message is not None, errors.read_text()
    assert started
    wait_until_gone(started)
    french = ["Le musée fermera demain.", " Où est la piscine ?"]
    assert message == {
        "one": "".join(french),
        "detected": "Claire is sleeping because she is tired.",
        "batch": ["".join(french), "Le chat dort."],
        "stream": french,
    }
