"""What the commands of the chart's hooks have in common: they work on the cluster, and tell line by line how it went.

They run where no person is: whoever reads the log of a failed hook must find everything that is amiss, and what to do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import typer

from app.cluster.client import ApiClient, BadConfig
from app.dra.words import printable
from app.settings import BadSettings, Settings

AMISS = 1
"""Exit code when anything is not as it should be."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one thing."""

    subject: str
    text: str
    """How it is; of what is amiss, with what to do."""
    is_amiss: bool = False

    def __str__(self) -> str:
        return printable(f"{'FAILED' if self.is_amiss else 'ok'} {self.subject}: {self.text}")


Hook = Callable[[ApiClient, Sequence[str]], Awaitable[Sequence[Finding]]]
"""What to do with the configurations of these names."""


def run(settings: Settings, hook: Hook) -> int:
    """Have it done, print the findings, return the exit code. Raises BadSettings."""
    if not settings.webhooks:
        raise BadSettings(("--webhooks: expected names of ValidatingWebhookConfigurations, found none",))
    findings = asyncio.run(_findings(settings, hook))
    for finding in findings:
        typer.echo(str(finding))
    return AMISS if any(finding.is_amiss for finding in findings) else 0


async def _findings(settings: Settings, hook: Hook) -> Sequence[Finding]:
    try:
        client = await ApiClient.connect(settings.kubeconfig, settings.context or None)
    except BadConfig as error:
        raise BadSettings((f"no cluster: {error}",)) from error
    async with client:
        return await hook(client, settings.webhooks)
