"""What `kubectl apply` keeps of a manifest in an annotation is no object of the cluster (H38)."""

from __future__ import annotations

import json

import pytest

import hyve
from hyve.strictjson import LONG

APPLIED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {}, "name": "cart", "namespace": "shop"}}
APPLIED |= {"spec": {"containers": [{"image": "nginx", "name": "web"}]}}
POD = {**APPLIED, "metadata": {"name": "real", "namespace": "shop"}, "status": {"phase": "Running"}}
KEY = "kubectl.kubernetes.io/last-applied-configuration"


def _yaml(applied: str) -> str:
    return f"""apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      {KEY}: {applied}
    name: cart-1
  status:
    phase: Running
kind: List
"""


FORMS = {
    "block": _yaml("|\n        " + json.dumps(APPLIED)),
    "kept block": _yaml("|-\n        " + json.dumps(APPLIED)),
    "folded": _yaml(">\n        " + json.dumps(APPLIED)),
    "quoted": _yaml("'" + json.dumps(APPLIED) + "'"),
    "described": f"Name: cart\nAnnotations:  {KEY}:\n                {json.dumps(APPLIED)}\nStatus: Running\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("padding", [0, LONG])
def test_the_annotation_has_a_table_and_no_relation(text: str, padding: int) -> None:
    """Its own table stays; the pods that stand beside it are those of the cluster."""
    document = hyve.parse(text + "# nothing\n" * (padding // 10))
    (part,) = (part for part in document.parts if part.syntax == "json")
    assert part.value == APPLIED
    assert "annotation" in part.flags
    assert "annotation" in document.flags
    with hyve.Datastore.from_document(document) as store:
        assert "relation" not in {table.kind for table in store.catalog.tables}
        assert store.query('SELECT "metadata_name" FROM records').rows == (("cart",),)
    beside = f"{text}\nthe pod:\n{json.dumps(POD)}\n" + "# nothing\n" * (padding // 10)
    with hyve.Datastore.from_text(beside) as store:
        assert store.query("SELECT name, phase FROM pods").rows == (("real", "Running"),)
        assert [store.reconstruct(number) for number in (0, 1)] == [APPLIED, POD]


def test_the_same_words_elsewhere_are_no_annotation() -> None:
    text = f"the {KEY} of it was lost:\n\nsee\n{json.dumps(POD)}\n"
    with hyve.Datastore.from_text(text) as store:
        assert store.query("SELECT name FROM pods").rows == (("real",),)
