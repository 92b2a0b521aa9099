"""The webhook without its door: the bytes of a review in, the bytes of the answer out."""

from collections.abc import Callable

from app.admission.admit import Rules, admit, unjudged
from app.admission.review import decode_review, encode_response
from app.dra.demand import ClaimReferences, Lookups, claim_references
from app.dra.judgement import World, judge
from app.dra.verdict import Verdict

Read = Callable[[str, ClaimReferences], Lookups]
"""The claims and templates of a namespace that a pod names."""


def answer(body: bytes, world: World, read: Read, rules: Rules, now: float) -> tuple[bytes, Verdict | None]:
    """The answer at the moment `now` (epoch seconds), and the verdict behind it; None: there was nothing to judge."""
    request = decode_review(body)
    decision, verdict = unjudged(request, rules), None
    if decision is None:
        assert request.pod is not None
        lookups = read(request.namespace, claim_references(request.pod))
        verdict = judge(request.pod, request.namespace, lookups, world, now)
        decision = admit(request, verdict, rules, now)
    content = encode_response(
        request.uid,
        allowed=decision.allowed,
        status=decision.status,
        warnings=decision.warnings,
        audit_annotations=decision.audit_annotations,
    )
    return content, verdict
