"""Containers of pods, other objects, quantities and names."""

from __future__ import annotations

from typing import Any

import pytest

from hyve.formats import relations
from hyve.formats.entities import application
from hyve.formats.kubernetes import quantity, recognise, speaker

AT = 1_706_933_106_000_000_000  # 2024-02-03T04:05:06Z
TEXT = "2024-02-03T04:05:06Z"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10m", 0.01),
        ("2", 2.0),
        (2, 2.0),
        (0.5, 0.5),
        ("16419384Ki", 16419384 * 1024.0),
        ("1.5Gi", 1.5 * 1024**3),
        ("129e6", 129e6),
        ("129M", 129e6),
        ("100n", 1e-7),
        ("1e400", None),
        ("1Kb", None),
        ("", None),
        ("1" * 5_000_000, None),
        (True, None),
        (10**400, None),
        ([], None),
    ],
)
def test_quantities(given: Any, expected: float | None) -> None:
    assert quantity(given) == (pytest.approx(expected) if expected is not None else None)


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        ("cart-5d9f7c6b5d-x2x4z", "cart"),
        ("cart-x2x4z", "cart"),
        ("cart-0", "cart"),
        ("payment-cache", "payment-cache"),
        ("my-backend-store", "my-backend-store"),
        ("cart", "cart"),
        ("-0", "-0"),
        ("", ""),
    ],
)
def test_the_application_of_a_pod(pod: str, name: str) -> None:
    assert application(pod) == name


def test_containers_with_requests_and_ends() -> None:
    limits = {"requests": {"cpu": "10m", "memory": "50Mi"}, "limits": {"memory": "1Gi"}}
    ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": TEXT, "finishedAt": "2024-02-03T04:05:07Z"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "cart-0", "namespace": "shop", "labels": {"app": "cart"}},
        "spec": {
            "initContainers": [{"name": "migrate", "image": "m:1"}],
            "containers": [{"name": "server", "image": "c:1", "resources": limits}, {"name": "proxy", "image": "p:1"}],
        },
        "status": {
            "initContainerStatuses": [
                {"name": "migrate", "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
            ],
            "containerStatuses": [
                {
                    "name": "server",
                    "ready": False,
                    "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": ended},
                },
                {"name": "proxy", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": TEXT}}},
            ],
        },
    }
    found = relations([pod])
    (row,) = found["pods"]
    assert (row["restarts"], row["reason"], row["ready"], row["images"]) == (4, "CrashLoopBackOff", False, "c:1, p:1")
    migrate, server, proxy = found["containers"]
    assert (migrate["init"], migrate["state"], migrate["reason"], migrate["exit_code"]) == (
        True,
        "terminated",
        "Completed",
        0,
    )
    assert server == {
        "time": AT,
        "end_time": AT + 1_000_000_000,
        "service": "cart",
        "namespace": "shop",
        "pod": "cart-0",
        "container": "server",
        "init": False,
        "image": "c:1",
        "ready": False,
        "restarts": 4,
        "state": "waiting",
        "reason": "CrashLoopBackOff",
        "exit_code": None,
        "last_reason": "OOMKilled",
        "last_exit_code": 137,
        "last_finished": AT + 1_000_000_000,
        "cpu_request": 0.01,
        "cpu_limit": None,
        "memory_request": 50 * 1024**2,
        "memory_limit": 1024**3,
    }
    assert (proxy["state"], proxy["time"], proxy["end_time"], proxy["reason"]) == ("running", AT, None, "")


def pod(status: dict[str, Any], **meta: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found = relations([{"kind": "Pod", "metadata": {"name": "p", **meta}, "status": status}])
    return found["pods"][0], found.get("containers", [])


def test_a_running_container_does_not_look_like_its_last_end() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "startedAt": TEXT, "finishedAt": TEXT}
    running = {"name": "c", "ready": True, "restartCount": 9, "state": {"running": {"startedAt": TEXT}}}
    row, (container,) = pod(
        {"phase": "Running", "containerStatuses": [{**running, "lastState": {"terminated": ended}}]}
    )
    assert (row["reason"], row["container"], row["restarts"], row["ready"]) == ("", "", 9, True)
    assert (container["state"], container["reason"], container["exit_code"]) == ("running", "", None)
    assert (container["last_reason"], container["last_exit_code"], container["last_finished"]) == ("OOMKilled", 137, AT)


def waiting(name: str, reason: str, restarts: int = 0, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": name, "ready": False, "restartCount": restarts, "state": state}


def test_reasons_of_pods() -> None:
    completed = {"name": "job", "restartCount": 0, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    for status, reason, container, message, restarts in (
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "", "low on memory", None),
        ({"phase": "Pending", "conditions": [unschedulable]}, "Unschedulable", "", "0/3 nodes", 0),
        (
            {
                "initContainerStatuses": [waiting("mig", "CrashLoopBackOff", 6, "back-off")],
                "containerStatuses": [waiting("c", "PodInitializing")],
            },
            "CrashLoopBackOff",
            "mig",
            "back-off",
            6,
        ),
        ({"containerStatuses": [waiting("c", "ContainerCreating")]}, "ContainerCreating", "c", "", 0),
        (
            {"containerStatuses": [waiting("a", "ImagePullBackOff"), waiting("b", "CrashLoopBackOff", 3)]},
            "CrashLoopBackOff",
            "b",
            "",
            3,
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [completed],
                "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}],
            },
            "",
            "",
            "",
            0,
        ),
    ):
        row, _ = pod(status)
        assert (row["reason"], row["container"], row["message"], row["restarts"]) == (
            reason,
            container,
            message,
            restarts,
        )


def test_pods_that_are_being_deleted() -> None:
    assert pod({"phase": "Running"}, deletionTimestamp=TEXT)[0]["deletion_time"] == AT
    assert pod({"phase": "Running"})[0]["deletion_time"] is None


def thing(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    (row,) = relations([{"kind": kind, "apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec, "status": status}])[
        "kubernetes_objects"
    ]
    return row


@pytest.mark.parametrize(
    ("kind", "spec", "status", "wanted", "there", "ready"),
    [
        ("DaemonSet", {}, {"desiredNumberScheduled": 5, "numberReady": 3}, 5, 3, False),
        ("DaemonSet", {}, {"desiredNumberScheduled": 5, "numberReady": 5}, 5, 5, True),
        ("StatefulSet", {"replicas": 2}, {"replicas": 2}, 2, 0, False),
        ("Deployment", {"replicas": 3}, {"unavailableReplicas": 3}, 3, 0, False),
        ("Deployment", {"replicas": 3}, {"readyReplicas": 3}, 3, 3, True),
        ("Deployment", {"replicas": 0}, {}, 0, 0, True),
        ("HorizontalPodAutoscaler", {}, {"currentReplicas": 8, "desiredReplicas": 10}, 10, 8, None),
        ("KafkaConnect", {"replicas": 3}, {}, 3, None, None),
    ],
)
def test_replicas(
    kind: str, spec: dict[str, Any], status: dict[str, Any], wanted: int, there: int | None, ready: bool | None
) -> None:
    row = thing(kind, spec, status)
    assert (row["replicas"], row["ready_replicas"], row["ready"]) == (wanted, there, ready)
    if ready is False:
        assert row["message"] == f"{there} of {wanted} replicas are ready"


@pytest.mark.parametrize(
    ("status", "ready", "restarts"),
    [
        ({"phase": "Running"}, None, None),
        ({"phase": "Running", "containerStatuses": []}, None, None),
        ({"phase": "Running", "containerStatuses": [{"name": "c"}]}, None, None),
        ({"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "restartCount": 3}]}, None, None),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, True, None),
        ({"phase": "Failed"}, False, None),
        ({"phase": "Pending"}, False, 0),
        (
            {"containerStatuses": [{"name": name, "ready": name == "c", "restartCount": 3} for name in "cd"]},
            False,
            6,
        ),
    ],
)
def test_what_no_status_tells_of_a_pod_is_none(
    status: dict[str, Any], ready: bool | None, restarts: int | None
) -> None:
    """A status that the end of the text cut says nothing of what it lacks."""
    spec = {"containers": [{"name": "c"}, {"name": "d"}]}
    found = relations([{"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": status}])
    assert (found["pods"][0]["ready"], found["pods"][0]["restarts"]) == (ready, restarts)


def test_a_status_without_its_counts_tells_nothing_of_replicas() -> None:
    row = thing("Deployment", {"replicas": 3}, {"conditions": [condition("Available", "True", "Min")]})
    assert (row["replicas"], row["ready_replicas"], row["ready"]) == (3, None, True)


def test_a_rollout_that_is_stuck() -> None:
    conditions = [condition("Available", "True", "Min"), condition("Progressing", "False", "ProgressDeadlineExceeded")]
    row = thing("Deployment", {"replicas": 3}, {"readyReplicas": 3, "conditions": conditions})
    assert (row["ready"], row["reason"]) == (False, "ProgressDeadlineExceeded")
    conditions = [condition("Available", "False", "Minimum"), conditions[1]]
    row = thing("Deployment", {"replicas": 3}, {"conditions": conditions})
    assert (row["ready"], row["reason"]) == (False, "ProgressDeadlineExceeded")
    assert thing("ClusterOperator", {}, {"conditions": [condition("Progressing", "False")]})["ready"] is None


def test_claims_autoscalers_and_nodes() -> None:
    row = thing("PersistentVolumeClaim", {}, {"phase": "Pending"})
    assert (row["phase"], row["ready"], row["reason"]) == ("Pending", False, "Pending")
    row = thing("PersistentVolumeClaim", {}, {"phase": "Bound"})
    assert (row["phase"], row["ready"], row["reason"]) == ("Bound", True, "")
    limited = condition("ScalingLimited", "True", "TooManyReplicas")
    row = thing("HorizontalPodAutoscaler", {}, {"conditions": [condition("AbleToScale", "True"), limited]})
    assert (row["ready"], row["reason"]) == (True, "TooManyReplicas")
    pressed = condition("MemoryPressure", "True", "KubeletHasInsufficientMemory")
    row = thing("Node", {}, {"conditions": [pressed, condition("Ready", "True", "KubeletReady")]})
    assert (row["ready"], row["reason"]) == (True, "KubeletHasInsufficientMemory")
    row = thing("Node", {}, {"conditions": [pressed]})
    assert (row["ready"], row["reason"]) == (False, "KubeletHasInsufficientMemory")


def test_times_of_events() -> None:
    about = {"kind": "Event", "involvedObject": {"kind": "Pod", "name": "cart-0"}, "lastTimestamp": None}
    series = {"count": 7, "lastObservedTime": "2024-02-03T04:05:08Z"}
    (row,) = relations([{**about, "eventTime": TEXT, "firstTimestamp": None, "series": series}])["kubernetes_events"]
    assert (row["time"], row["first_time"], row["count"]) == (AT + 2_000_000_000, AT, 7)
    (row,) = relations([{**about, "firstTimestamp": TEXT, "lastTimestamp": "2024-02-03T04:05:07Z", "count": 2}])[
        "kubernetes_events"
    ]
    assert (row["time"], row["first_time"], row["count"]) == (AT + 1_000_000_000, AT, 2)


def condition(type_: str, status: str, reason: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": f"{type_} is {status}"}


@pytest.mark.parametrize(
    ("conditions", "ready", "reason"),
    [
        ([condition("Degraded", "False"), condition("Available", "True")], True, ""),
        ([condition("Available", "True"), condition("Degraded", "True", "Sync")], False, "Sync"),
        (
            [condition("Ready", "False", "KubeletDown"), condition("MemoryPressure", "True", "Full")],
            False,
            "KubeletDown",
        ),
        ([condition("Ready", "Unknown", "NodeStatusUnknown")], False, "NodeStatusUnknown"),
        ([condition("Progressing", "True")], None, ""),
        ([], None, ""),
    ],
)
def test_objects_and_their_conditions(conditions: list[Any], ready: bool | None, reason: str) -> None:
    item = {
        "kind": "ClusterOperator",
        "apiVersion": "config.openshift.io/v1",
        "metadata": {"name": "dns", "creationTimestamp": TEXT},
        "status": {"conditions": conditions},
    }
    for value in (item, {"items": [item]}, {"kind": "List", "items": [item, 5]}, [item]):
        (row,) = relations([value])["kubernetes_objects"]
        assert (row["kind"], row["name"], row["time"], row["ready"], row["reason"]) == (
            "ClusterOperator",
            "dns",
            AT,
            ready,
            reason,
        )
        assert row["conditions"] == {said["type"]: said["status"] for said in conditions}


def test_items_take_the_kind_of_their_list_and_replicas_are_numbers() -> None:
    item = {"metadata": {"name": "cart"}, "spec": {"replicas": 3}, "status": {"readyReplicas": 1}}
    (row,) = relations([{"kind": "DeploymentList", "items": [item]}])["kubernetes_objects"]
    assert (row["kind"], row["service"], row["replicas"], row["ready_replicas"]) == ("Deployment", "cart", 3, 1)


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "video", "metadata": {"name": "x"}},
        {"kind": "Deployment", "metadata": {"labels": {}}, "spec": {}},
        {"kind": 5, "metadata": {"name": "x"}, "spec": {}},
        {"items": [{"kind": "book", "title": "x"}]},
        {"kind": "Event", "metadata": {"name": "x"}, "status": {}},
    ],
)
def test_what_is_no_object(value: Any) -> None:
    assert relations([value]) == {}


EVENT = {
    "metadata": {"name": "e", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "name": "cart-5d9f7c6b5d-x2x4z", "namespace": "shop"},
    "reason": "OOMKilling",
    "message": "out of memory",
    "type": "Warning",
    "lastTimestamp": "2023-11-14T22:13:21Z",
}


@pytest.mark.parametrize(
    ("value", "service"),
    [
        (EVENT, "cart"),  # kubernetes-event-exporter
        ({"verb": "ADDED", "event": EVENT}, "cart"),  # eventrouter
        ({"verb": "UPDATED", "event": EVENT, "old_event": {**EVENT, "reason": "BackOff"}}, "cart"),
        ({**EVENT, "involvedObject": {**EVENT["involvedObject"], "labels": {"app": "basket"}}}, "basket"),
        ({**EVENT, "involvedObject": {"kind": "Node", "name": "node-1", "labels": {"app": "x"}}}, "node-1"),
    ],
)
def test_events_as_exporters_write_them(value: dict[str, Any], service: str) -> None:
    found = recognise(value)
    assert found is not None
    assert [(row["service"], row["reason"]) for row in found["kubernetes_events"]] == [(service, "OOMKilling")]


def test_what_only_looks_like_an_event_is_none() -> None:
    assert recognise({"involvedObject": "x", "message": "y"}) is None
    assert recognise({"verb": "get", "event": {"a": 1}}) is None


def test_log_shippers_name_the_application_alike() -> None:
    """Fluent Bit writes `labels`, Vector `pod_labels`."""
    pod = {"pod_name": "web-5d9f7c6b5d-x2x4z"}
    assert speaker({**pod, "labels": {"app": "cart"}}) == speaker({**pod, "pod_labels": {"app": "cart"}}) == "cart"
    assert speaker({**pod, "pod_labels": {"app.kubernetes.io/name": "cart", "app": "x"}}) == "cart"
    assert speaker({**pod, "pod_labels": {"pod-template-hash": "5d9f7c6b5d"}}) == "web"
