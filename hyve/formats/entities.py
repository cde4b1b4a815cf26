"""What a telemetry record is about, from the many names that a service goes by: its pods', its addresses', its labels'.

Rules:
- `service_of` reads the usual labels, the most particular first. Of a pod's name only the workload is kept, so that all
  pods of a service, its events and its alerts are about one thing.
- `entity_key` is what two names of one thing have in common: `BCart`, `prod/bcart`, `bcart-7d9f8b6c5d-x2x4z`,
  `bcart:8080` and `bcart.prod.svc.cluster.local` are all `bcart`. Who writes records under a key and who looks for
  them must both ask it.
- A name that is an address stays one: nothing is cut off `10.0.0.3` but a port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
"""What Kubernetes makes names of, so that they spell nothing."""
HASH = rf"-(?:[a-f0-9]{{6,10}}|{_LETTERS}{{8,10}})"
"""What a Deployment appends to the names of its replica sets."""
_REPLICA = re.compile(rf"{HASH}-[a-z0-9]{{5}}\Z")
_RANDOM = re.compile(rf"-(?:{_LETTERS}{{5}}|\d{{1,4}})\Z")
_CLUSTER = re.compile(r"(?:\A|\.)(?P<service>[a-z0-9-]{1,63})\.[a-z0-9-]{1,63}\.svc(?:\.[a-z0-9.-]{1,100})?\Z")
_SHORT = re.compile(r"([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)\.[a-z][a-z0-9-]{0,62}(?::\d{1,5})?\Z")
_NAMESPACED = re.compile(r"[a-z0-9][a-z0-9-]{0,62}/([a-z0-9][a-z0-9._-]{0,200})\Z")
_PORT = re.compile(r"(?<=[^:]):\d{1,5}\Z")
_AUTHORITY = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://(?:[^/?#@\s]{0,200}@)?(\[[0-9a-f:.]{2,45}\]|[^/?#:@\s]{1,253})", re.I
)
_LONGEST = 300
"""Characters of a name that may be one; longer ones are taken as they are."""

_SERVICE_KEYS = (
    *("service.name", "service_name", "service"),
    *("k8s.deployment.name", "deployment", "k8s.statefulset.name", "statefulset", "k8s.daemonset.name", "daemonset"),
    *("app.kubernetes.io/name", "app_kubernetes_io_name", "app_kubernetes_io/name", "k8s-app", "app"),
    *("k8s.pod.name", "pod", "pod_name"),
    *("k8s.cronjob.name", "cronjob", "k8s.job.name", "job_name"),
    *("host.name", "host", "job", "instance"),
)
_POD_KEYS = frozenset({"k8s.pod.name", "pod", "pod_name"})


def service_of(labels: Mapping[str, Any]) -> str:
    """Who speaks: the first label of the usual ones that is set, else "unknown". The SDK's default name
    `unknown_service` counts only where nothing better is there; a pod counts as its workload."""
    default = "unknown"
    for key in _SERVICE_KEYS:
        value = labels.get(key)
        if type(value) is str and value:
            if value.startswith("unknown_service"):
                default = value
            else:
                return application(value) if key in _POD_KEYS else value
    return default


def without_replica(name: str) -> str:
    """A name without what a Deployment appends to those of its pods: `cart-5d9f7c6b5d-x2x4z` is of `cart`."""
    return _REPLICA.sub("", name) or name


def application(pod: str) -> str:
    """A pod's name without what its controllers append: `cart-5d9f7c6b5d-x2x4z`, `cart-x2x4z` and `cart-0` are of
    `cart`."""
    stem = _REPLICA.sub("", pod)
    return (_RANDOM.sub("", pod) if stem == pod else stem) or pod


@lru_cache(maxsize=8192)
def entity_key(name: str) -> str:
    """What every name of one thing has in common, in lower case; the name itself where nothing else is left."""
    if len(name) > _LONGEST:
        return name
    plain = _PORT.sub("", name.strip().lower())
    if match := _NAMESPACED.match(plain):
        plain = match[1]
    return without_replica(in_cluster(plain)) or name


@lru_cache(maxsize=8192)
def in_cluster(address: str) -> str:
    """The service that an address of Kubernetes' own DNS names; any other address as it is."""
    if ".svc" not in address:
        return address
    match = _CLUSTER.search(address.lower().rstrip("."))
    return match["service"] if match else address


@lru_cache(maxsize=8192)
def peer_names(peer: str) -> tuple[str, ...]:
    """What a peer may be called: itself, and of `pay.prod`, how Kubernetes' pods may write the service of another
    namespace, `pay` too. That `example.com` may be one's own `example` costs little: only who is there is found."""
    match = _SHORT.match(peer)
    return (peer, match[1]) if match else (peer,)


def host_in(url: str) -> str | None:
    """The host that a URL names, without its port."""
    match = _AUTHORITY.match(url[:500])
    return match[1].strip("[]") if match else None
