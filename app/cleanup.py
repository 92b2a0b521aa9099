"""`vacancy cleanup`: takes out of the cluster what an uninstallation would leave, or leave for too long.

The chart runs it before a deletion. Helm 3 does not know the kind of a webhook configuration and deletes it last, after
the pods it points to (seen in 3.17): until then every creation of a pod would wait for nobody. Requests of ours are no
part of a release at all.
"""

from collections.abc import Sequence

from app.cluster import webhooks
from app.cluster.client import ApiClient, ApiError, Forbidden, NotFound
from app.cluster.pool_status import remove_all
from app.hooks import Finding

_REQUESTS = "ResourcePoolStatusRequests"


async def cleanup(client: ApiClient, configurations: Sequence[str]) -> list[Finding]:
    """Delete these webhook configurations, then our ResourcePoolStatusRequests. What is gone already is fine."""
    return [*[await _deleted(client, name) for name in configurations], await _removed(client)]


async def _deleted(client: ApiClient, configuration: str) -> Finding:
    subject = f"ValidatingWebhookConfiguration {configuration}"
    try:
        await webhooks.delete(client, configuration)
    except NotFound:
        return Finding(subject, "not there")
    except Forbidden:
        return Finding(subject, "may not be deleted: grant this account 'delete' on it", is_amiss=True)
    except ApiError as error:
        return Finding(subject, f"not deleted, {error}: run this again", is_amiss=True)
    return Finding(subject, "deleted")


async def _removed(client: ApiClient) -> Finding:
    try:
        left = await remove_all(client)
    except NotFound:
        return Finding(_REQUESTS, "not served by this cluster")
    except Forbidden:
        return Finding(_REQUESTS, "may not be listed: grant this account 'list' and 'delete'", is_amiss=True)
    except ApiError as error:
        return Finding(_REQUESTS, f"not listed, {error}: run this again", is_amiss=True)
    if left:
        text = f"{left} of ours could not be deleted: grant this account 'delete', or run this again"
        return Finding(_REQUESTS, text, is_amiss=True)
    return Finding(_REQUESTS, "none of ours is left")
