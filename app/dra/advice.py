"""What the platform team advises whoever gets no device: their text for the namespace, filled in."""

from fnmatch import fnmatchcase

from app.dra.verdict import NeedVerdict
from app.dra.words import number, shortened
from app.wording import LENGTHS, PAGE, Texts


def advice(texts: Texts, namespace: str, page: str, need: NeedVerdict, known: NeedVerdict) -> str:
    """The advice; empty: none for this namespace. `known`: the need as judged for the class the answer rests on."""
    text = next((text for pattern, text in texts if fnmatchcase(namespace, pattern)), None)
    if text is None:
        return ""
    values = {
        "namespace": namespace,
        "name": need.name,
        "class": known.class_name,
        "count": number(need.count),
        "total": "unknown" if known.total is None else number(known.total),
    }
    shown = {field: shortened(value, LENGTHS[field]) for field, value in values.items()}
    return text.filled(shown | {PAGE: page})
