"""Claims and claim templates of a submitted text, which count as existing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.dra.demand import Lookup, Lookups
from app.dra.objects import ResourceClaim, ResourceClaimTemplate
from app.presubmit.asked import is_claim
from app.presubmit.manifest import Document, decode


@dataclass(frozen=True, slots=True)
class Overlay:
    """Claims and templates of a submitted text, by namespace and name."""

    claims: Mapping[tuple[str, str], ResourceClaim]
    templates: Mapping[tuple[str, str], ResourceClaimTemplate]

    def over(self, namespace: str, found: Lookups) -> Lookups:
        """What there will be once the text is applied: what exists stays (a spec is immutable), the rest is added.

        A claim that could not be read may exist and be allocated, so that stays unknown; a template has no state.
        """
        return Lookups(
            claims={
                name: self.claims.get((namespace, name), known) if known is Lookup.MISSING else known
                for name, known in found.claims.items()
            },
            templates={
                name: self.templates.get((namespace, name), known) if isinstance(known, Lookup) else known
                for name, known in found.templates.items()
            },
        )


def overlay(documents: Iterable[Document], namespace: str) -> Overlay:
    """The claims and templates among the documents. Raises ManifestError."""
    claims, templates = {}, {}
    for document in filter(is_claim, documents):
        key = (document.namespace or namespace, document.name)
        if document.kind == "ResourceClaim":
            claims[key] = decode(document, ResourceClaim)
        else:
            templates[key] = decode(document, ResourceClaimTemplate)
    return Overlay(claims, templates)
