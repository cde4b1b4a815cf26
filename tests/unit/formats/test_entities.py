"""What names of one thing have in common, whoever writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyve.formats.entities import entity_key, host_in, in_cluster, peer_names, service_of


@pytest.mark.parametrize(
    "name",
    [
        *("bcart", "BCart", " bcart", "prod/bcart", "bcart:8080", "bcart-7d9f8b6c5d-x2x4z", "prod/BCart:80"),
        *("bcart.prod.svc", "bcart.prod.svc.cluster.local", "bcart.prod.svc.cluster.local:8080", "x.bcart.prod.svc."),
    ],
)
def test_all_names_of_a_service_have_one_key(name: str) -> None:
    assert entity_key(name) == "bcart"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("10.0.0.3:9100", "10.0.0.3"),
        ("::1", "::1"),
        ("fe80::1:8080", "fe80::1"),
        ("api.example.com", "api.example.com"),
        ("a/b/c", "a/b/c"),
        ("/checkout", "/checkout"),
        ("db-0", "db-0"),
        ("x" * 301, "x" * 301),
        ("", ""),
        (":80", ":80"),
    ],
)
def test_what_is_no_such_name_stays(name: str, key: str) -> None:
    assert entity_key(name) == key


NAME = r"[a-z]{1,5}(-[a-z0-9]{5,10}){0,2}(\.[a-z]{1,4}){0,3}(:\d+)?"


@given(st.text(max_size=40) | st.from_regex(NAME, fullmatch=True))
def test_any_text_has_a_key_that_is_never_empty_without_need(name: str) -> None:
    assert bool(entity_key(name)) == bool(name)


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"pod": "k8ssvc-7d9f8b6c5d-x2x4z", "job": "kube-state-metrics", "instance": "10.1.1.1:80"}, "k8ssvc"),
        ({"pod": "db-0"}, "db"),
        ({"k8s.pod.name": "node-exporter-x2x4z"}, "node-exporter"),
        ({"deployment": "cart", "pod": "other-7d9f8b6c5d-x2x4z"}, "cart"),
        ({"statefulset": "db", "job": "kube-state-metrics"}, "db"),
        ({"daemonset": "fluent-bit", "job": "kube-state-metrics"}, "fluent-bit"),
        ({"job_name": "backup", "job": "kube-state-metrics"}, "backup"),
        ({"job": "prod/cart", "instance": "10.1.1.1:80"}, "prod/cart"),
        ({"service": "cart-0"}, "cart-0"),
        ({"service.name": "unknown_service:java", "host": "web-1"}, "web-1"),
        ({"service.name": "unknown_service:java"}, "unknown_service:java"),
        ({"severity": "page"}, "unknown"),
    ],
)
def test_labels_name_a_workload(labels: dict[str, str], service: str) -> None:
    assert service_of(labels) == service


def test_a_peer_of_another_namespace_may_be_called_by_its_name_alone() -> None:
    assert peer_names("pay.prod") == ("pay.prod", "pay")
    assert peer_names("pay.prod:8080") == ("pay.prod:8080", "pay")
    for other in ("pay", "10.0.0.3", "10.0", "api.example.com", "pay.", ".prod", ""):
        assert peer_names(other) == (other,)


def test_addresses_and_urls_name_a_host() -> None:
    assert host_in("http://user:pw@bpay:8080/charge?x=1") == "bpay"
    assert host_in("HTTPS://bpay.prod.svc.cluster.local/") == "bpay.prod.svc.cluster.local"
    assert host_in("http://[::1]:80/") == "::1"
    assert host_in("/charge") is host_in("") is host_in("http://") is None
    assert in_cluster("db-0.db.prod.svc.cluster.local") == "db"
    assert in_cluster("api.svc.example") == "api.svc.example"
    assert in_cluster("cache.svc") == "cache.svc"
