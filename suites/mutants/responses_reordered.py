"""Sends each response without waiting for those of earlier requests."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "responses on one connection overtake each other"
MODELS = "pipelined commits that are answered out of order"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    import asyncio

    def make(_: Function) -> Function:
        async def serve(connection: Any) -> None:
            async def answer(frame: Any) -> None:
                await connection._send(await connection.answer(connection, frame))

            running = set()
            try:
                while True:
                    task = asyncio.ensure_future(answer(await connection._next_frame()))
                    running.add(task)
                    task.add_done_callback(running.discard)
                    if len(running) > 1:
                        mark.hit()
            except Exception:
                connection.close()

        return serve

    replace("urteil.broker.net.connection:Connection._serve", make)
