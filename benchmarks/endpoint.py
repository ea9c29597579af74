"""What asking an endpoint costs the client: `python benchmarks/endpoint.py [--json PATH] [--requests N]`.

Processor time of this process per request, from the question to the row in the table, against the tests' server in a
process of its own on this machine, at concurrency 64; the median of five shares of the requests. Beside it what the
official client alone takes for the same requests, and what it costs to find the answers afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lab_server.running import RunningLab, running_lab
from nonmember.artifacts.store import Store
from nonmember.endpoints import Limits, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.service import RequestSettings, sent

MOST_MILLISECONDS = 3.0
CONCURRENCY = 64
SHARES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--requests", type=int, default=2500)
    arguments = parser.parse_args()
    limits = Limits(CONCURRENCY, 60, 4, None, None, None, None, None)
    plain = Request("d", "q", "", 16, 0.0, 0, instruction="Answer with a word.")
    each = arguments.requests // SHARES
    shares = [
        [replace(plain, question=f"What is {share}-{index}? " + "A word of the text. " * 40) for index in range(each)]
        for share in range(SHARES)
    ]
    with running_lab() as lab, tempfile.TemporaryDirectory() as folder:
        lab.setup()

        def client() -> EndpointClient:
            return EndpointClient(lab.endpoint(), Store(Path(folder)), limits, Session())

        first = client()
        questions.completions(first, [plain])  # loads what is loaded once
        asked = [milliseconds(lambda share=share: questions.completions(first, share), each) for share in shares]
        alone = [milliseconds(lambda share=share: bare(lab, share), each) for share in shares]
        found = [milliseconds(lambda share=share: questions.completions(client(), share), each) for share in shares]
        assert lab.ledger()["twice"] == SHARES * each, "asked once by each of the two"
    result = {
        "name": f"processor time of the client per request at concurrency {CONCURRENCY}",
        "asked_ms": statistics.median(asked),
        "official_client_ms": statistics.median(alone),
        "found_ms": statistics.median(found),
        "required_ms": MOST_MILLISECONDS,
    }
    took = f"official client alone {result['official_client_ms']:.2f} ms, found again {result['found_ms']:.3f} ms"
    print(f"{result['asked_ms']:.2f} ms  (required {MOST_MILLISECONDS})  {took}: {result['name']}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([result], indent=1) + "\n", encoding="utf-8")
    return int(statistics.median(asked) > MOST_MILLISECONDS)


def milliseconds(work: Callable[[], Any], number: int) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) / number * 1e3


def bare(lab: RunningLab, requests: list[Request]) -> None:
    """The same requests by the official client's own method, of which only the text is kept."""
    import openai

    async def ask() -> None:
        waiting = iter(requests)
        async with openai.AsyncOpenAI(api_key="none", base_url=lab.url, max_retries=0) as client:

            async def work() -> None:
                for request in waiting:
                    body: Any = sent(lab.endpoint(), request, RequestSettings()).body
                    await client.chat.completions.create(**body)

            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))

    asyncio.run(ask())


if __name__ == "__main__":
    sys.exit(main())
