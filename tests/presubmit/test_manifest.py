"""Texts to objects."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.presubmit.manifest import ManifestError, parse
from app.presubmit.yaml_reader import read_yaml

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"

LAUGHS = "kind: Pod\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, this in zip(string.ascii_lowercase, string.ascii_lowercase[1:9], strict=False)
)

REFUSED = {
    "a colon too many": ("kind: Pod\nspec: a: b\n", "f.yaml:2: mapping values are not allowed in this context"),
    "a bracket left open": ("kind: Pod\nspec: [1\n", "f.yaml:3: did not find expected ',' or ']'"),
    "a tab for indentation": ("kind: Pod\n\tspec: 1\n", "f.yaml:2: found a tab character that violates indentation"),
    "a key given twice": (
        "kind: Pod\nspec:\n  a: 1\n  a: 2\n",
        "f.yaml:4: key 'a' is given twice",
    ),
    "a key that is no text": ("kind: Pod\n? [a]\n: 1\n", "f.yaml:2: a key must be text"),
    "an alias as key": ("kind: &k Pod\n*k : 1\n", "f.yaml:2: a key must be text"),
    "an alias into itself": ("kind: Pod\na: &a\n- *a\n", "f.yaml:3: an alias must come after what it stands for"),
    "an alias of another document": (
        POD.replace("name: p", "name: &a p") + "---\nb: *a\n",
        "f.yaml:6: an alias must come after what it stands for",
    ),
    "aliases to aliases": (LAUGHS, "f.yaml:7: aliases add more than 1048576 characters"),
    "a merge of text": ("kind: Pod\na: {<<: x}\n", "f.yaml:2: only a mapping can be merged"),
    "a tag of somebody's": ("kind: Pod\na: !secret x\n", "f.yaml:2: tag '!secret' is not understood"),
    "a tag for Python": (
        "kind: !!python/name:os.system x\n",
        "f.yaml:1: tag 'tag:yaml.org,2002:python/name:os.system' is not understood",
    ),
    "65 lists in one another": ("a: " + "[" * 64, "f.yaml:1: nested more than 64 deep"),
    "a NUL": ("kind: Pod\na: \0\n", "f.yaml:2: control characters are not allowed"),
    "a byte that is not UTF-8": (b"kind: Pod\na: \xff\n", "f.yaml:2: not UTF-8"),
    "UTF-16": ("kind: Pod\n".encode("utf-16"), "f.yaml:1: not UTF-8"),
    "a list": ("- 1\n", "f.yaml:1: expected an object, found a list"),
    "a scalar in the second document": (POD + "---\n\nx\n", "f.yaml:7: expected an object, found a str"),
    "an item that is a number": (
        "apiVersion: v1\nkind: PodList\nitems:\n- 5\n",
        "f.yaml:1: expected an object, found a int",
    ),
    "no kind": ("---\n\na: 1\n", "f.yaml:3: object without kind"),
    "no apiVersion": (POD + "---\nkind: Pod\n", "f.yaml:6: object without apiVersion"),
    "a name that is a number": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n",
        "f.yaml:1: Expected `str | null`, got `int` - at `$.metadata.name`",
    ),
    "a number of 6,021 digits": (
        "kind: Pod\na: 0x" + "f" * 5_000,
        "f.yaml:1: a number or a text that cannot be written as JSON",
    ),
    "JSON that is cut off": ('{"apiVersion": "v1",\n"kind":', "f.yaml:2: did not find expected node content"),
    "JSON with an object without kind": (
        '{"apiVersion": "v1", "kind": "List",\n"items": [\n{"apiVersion": "v1"}]}',
        "f.yaml:3: object without kind",
    ),
    "JSON nested 100,000 deep": ('{"a":' * 100_000, "f.yaml:1: nested more than 64 deep"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_named_with_file_and_line(text: str | bytes, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(text if isinstance(text, bytes) else text.encode(), "f.yaml")
    assert str(caught.value) == message


def test_a_text_over_the_limit_is_not_even_looked_at() -> None:
    with pytest.raises(ManifestError, match=r"^f.yaml:1: 11 bytes are more than the limit of 10$"):
        parse(b"kind: [[[[[", "f.yaml", max_bytes=10)


SCALARS = {
    "a time is text": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    "a date is text": ("2026-01-01", "2026-01-01"),
    "minutes and seconds are text": ("12:30", "12:30"),
    "a version is text": ("1.2.3", "1.2.3"),
    "a quantity is text": ("500m", "500m"),
    "quotes make text": ('"1"', "1"),
    "a tag makes text": ("!!str 1", "1"),
    "infinity, which JSON has not, is text": (".inf", ".inf"),
    "a number beyond a float is text": ("1e400", "1e400"),
    "digits of another script are text": ("1\u0661", "1\u0661"),
    "on is a boolean": ("on", True),
    "No is a boolean": ("No", False),
    "a tilde is null": ("~", None),
    "nothing is null": ("", None),
    "an integer": ("-12", -12),
    "an old octal": ("0644", 420),
    "a new octal": ("0o644", 420),
    "hexadecimal": ("0x1F", 31),
    "an integer with underscores": ("1_000", 1000),
    "an integer of any size": ("99999999999999999999999", 99999999999999999999999),
    "a float": ("-.5", -0.5),
    "a float with an exponent only": ("1e3", 1000.0),
}


@pytest.mark.parametrize(("written", "value"), SCALARS.values(), ids=SCALARS)
def test_scalars_mean_what_they_mean_to_kubectl(written: str, value: object) -> None:
    ((_, document),) = read_yaml(f"v: {written}\n")
    assert document == {"v": value}
    assert type(document["v"]) is type(value)


def test_merge_keys_fill_in_what_is_not_written_out() -> None:
    ((_, document),) = read_yaml("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {'<<': 1}\n")
    assert document["c"] == {"x": 3, "y": 1, "z": 2}


def test_every_document_and_item_knows_its_line() -> None:
    text = (
        f"# first\n{POD}---\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n"
        "-\n  apiVersion: v1\n  kind: Pod\n  metadata: {generateName: g-, namespace: n}\n"
    )
    assert [(d.kind, d.namespace, d.name, d.source) for d in parse(text.encode(), "f.yaml")] == [
        ("Pod", "", "p", "f.yaml:2"),
        ("Node", "", "", "f.yaml:11"),
        ("Pod", "n", "g-", "f.yaml:14"),
    ]


def test_json_says_the_same_as_yaml() -> None:
    pod = '{"apiVersion":"v1","kind":"Pod",%s"metadata":{"name":"%s"}}'
    items = f"\n{pod % ('', 'a')},\n{pod % (chr(10), 'b')}\n, {pod % ('', 'c')}"
    text = f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}'
    as_json = parse(text.encode(), "f.json")
    as_yaml = parse(f"---\n{text}".encode(), "f.json")
    assert [json.loads(d.json) for d in as_json] == [json.loads(d.json) for d in as_yaml]
    assert [d.source for d in as_json] == ["f.json:2", "f.json:3", "f.json:5"]


def test_items_of_a_typed_list_have_its_kind() -> None:
    text = b'{"kind":"ResourceSliceList","apiVersion":"resource.k8s.io/v1","items":[{"metadata":{"name":"s"}}]}'
    for data in (text, b"---\n" + text):
        (found,) = parse(data, "f")
        assert (found.kind, found.api_version, found.name) == ("ResourceSlice", "resource.k8s.io/v1", "s")


def test_lists_without_items_and_empty_documents_hold_nothing() -> None:
    text = (
        "---\n---\napiVersion: v1\nkind: List\nitems: null\n---\napiVersion: v1\nkind: PodList\nitems: []\n---\n# end\n"
    )
    assert parse(text.encode(), "f") == ()
    assert parse(b"", "f") == ()
    assert parse(b"\xef\xbb\xbf", "f") == ()


def test_another_kind_may_use_the_words_list_and_items_as_it_likes() -> None:
    documents = parse(
        b"{apiVersion: a/v1, kind: ShoppingList, items: {a: 1}}\n---\n{apiVersion: a/v1, kind: X, items: []}", "f"
    )
    assert [d.kind for d in documents] == ["ShoppingList", "X"]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parse(b"\xef\xbb\xbf" + POD.encode(), "f")[0].name == "p"


@given(st.text() | st.binary())
def test_whatever_the_text_it_is_read_or_refused_in_one_line(text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
    try:
        problem = f"f: {parse(data, 'f')}"
    except ManifestError as error:
        problem = str(error)
    assert problem.startswith("f:")
    assert "\n" not in problem


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text().filter(lambda key: key not in {"metadata", "items"}), json_values))
def test_an_object_survives_unchanged(fields: dict[str, object]) -> None:
    written = {**fields, "kind": "X", "apiVersion": "v1"}
    (found,) = parse(json.dumps(written).encode(), "f")
    assert json.loads(found.json) == written
