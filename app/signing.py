"""Questions to the process that signs. It lives for one answer; keys go through pipes and never touch a disk."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import msgspec

from certs import exchange
from certs.exchange import Renewal, Situation

SECONDS = 30.0
"""For an answer; it takes a tenth of a second where the processor is free."""


class NotSigned(Exception):
    """There was no answer. One line."""


async def renewal(situation: Situation) -> Renewal:
    """What is to be done with certificates, by `certs.renewal`. Raises NotSigned."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "certs.renewal"), env=environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        raise NotSigned(f"the process that signs does not start: {error}") from error
    try:
        async with asyncio.timeout(SECONDS):
            answer, said = await process.communicate(msgspec.json.encode(situation))
        if process.returncode == 0:
            return msgspec.json.decode(answer, type=Renewal)
    except TimeoutError as error:
        raise NotSigned(f"the process that signs gave no answer within {SECONDS:g} s") from error
    except (OSError, msgspec.MsgspecError) as error:
        raise NotSigned(f"the process that signs gave no answer: {error}") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    last = said.decode(errors="replace").strip().rpartition("\n")[2]
    raise NotSigned(f"no certificate can be made: {last or f'exit {process.returncode}'}")


def environment() -> dict[str, str]:
    """Ours, in which `certs` is found where ours was, be it installed or a checkout.

    With `-P` nothing is imported from the working directory: whoever may write there must not be handed the keys.
    """
    ours, theirs = str(Path(exchange.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")
    # No trailing separator: an empty entry would be the working directory again.
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (ours, theirs)))}
