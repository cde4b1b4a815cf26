"""Tables that are drawn by blanks, dashes or bars: where their columns begin and end."""

from __future__ import annotations

import pytest

from hyve.delimited import Table
from hyve.tables import find


def only(text: str) -> Table:
    found = find(text)
    assert len(found) == 1
    return found[0]


KUBECTL = """\
NAME                READY   STATUS             RESTARTS        AGE   NOMINATED NODE   LABELS
web-1               1/1     Running            4 (20m ago)     5d    <none>           app=web,tier=front
db-certs-757f89d9   0/1     CrashLoopBackOff   42 (119s ago)   17m   <none>
cart-2              1/1     Running            0               6d    <none>           a=b c=d
"""


def test_fixed_width_by_the_starts_of_the_header() -> None:
    text = f"stdout:\n{KUBECTL}\nstderr:\n"
    table = only(text)
    assert table.rows == [
        {
            "NAME": "web-1",
            "READY": "1/1",
            "STATUS": "Running",
            "RESTARTS": "4 (20m ago)",
            "AGE": "5d",
            "NOMINATED NODE": "<none>",
            "LABELS": "app=web,tier=front",
        },
        {
            "NAME": "db-certs-757f89d9",
            "READY": "0/1",
            "STATUS": "CrashLoopBackOff",
            "RESTARTS": "42 (119s ago)",
            "AGE": "17m",
            "NOMINATED NODE": "<none>",
            "LABELS": "",
        },
        {
            "NAME": "cart-2",
            "READY": "1/1",
            "STATUS": "Running",
            "RESTARTS": "0",
            "AGE": "6d",
            "NOMINATED NODE": "<none>",
            "LABELS": "a=b c=d",
        },
    ]
    assert text[table.start : table.end] == KUBECTL.rstrip("\n")
    assert table.syntax == "table"


def test_one_row_is_enough_below_capitals() -> None:
    assert only("NAME    READY   AGE\nweb-1   1/1     5d\n").rows == [{"NAME": "web-1", "READY": "1/1", "AGE": "5d"}]


def test_an_empty_cell_in_the_middle() -> None:
    text = (
        "CONTAINER ID   IMAGE     PORTS                NAMES\n"
        "d9b100f2f636   nginx     0.0.0.0:80->80/tcp   web\n"
        "a1b2c3d4e5f6   redis                          cache\n"
    )
    assert only(text).rows[1] == {"CONTAINER ID": "a1b2c3d4e5f6", "IMAGE": "redis", "PORTS": "", "NAMES": "cache"}


def test_an_underlined_header() -> None:
    text = (
        "Events:\n"
        "  Type     Reason     Age              From      Message\n"
        "  ----     ------     ----             ----      -------\n"
        "  Warning  BackOff    5d (x2 over 6d)  kubelet   Back-off restarting\n"
    )
    assert only(text).rows == [
        {
            "Type": "Warning",
            "Reason": "BackOff",
            "Age": "5d (x2 over 6d)",
            "From": "kubelet",
            "Message": "Back-off restarting",
        }
    ]


def test_names_with_one_blank_between_them() -> None:
    text = (
        "  UNIT                      LOAD   ACTIVE SUB     DESCRIPTION\n"
        "  accounts-daemon.service   loaded active running Accounts Service\n"
        "  apparmor.service          loaded active exited  Load profiles\n"
        "  snapd.service             loaded failed failed  Snap Daemon\n"
    )
    assert only(text).rows[2] == {
        "UNIT": "snapd.service",
        "LOAD": "loaded",
        "ACTIVE": "failed",
        "SUB": "failed",
        "DESCRIPTION": "Snap Daemon",
    }


def test_numbers_set_to_the_right() -> None:
    df = (
        "Filesystem      Size  Used Avail Use% Mounted on\n"
        "udev            7.8G     0  7.8G   0% /dev\n"
        "/dev/nvme0n1p2  468G  320G  125G  72% /\n"
        "tmpfs           7.8G   84M  7.7G   2% /dev/shm\n"
    )
    assert only(df).rows[1] == {
        "Filesystem": "/dev/nvme0n1p2",
        "Size": "468G",
        "Used": "320G",
        "Avail": "125G",
        "Use%": "72%",
        "Mounted on": "/",
    }
    ps = (
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        "root           1  0.0  0.1 168140 11340 ?        Ss   Jan01   0:09 /sbin/init splash\n"
        "systemd+     612  0.0  0.0  89356  6540 ?        Ssl  Jan01   0:00 /lib/systemd/systemd-timesyncd\n"
    )
    assert [(row["USER"], row["RSS"], row["COMMAND"]) for row in only(ps).rows] == [
        ("root", "11340", "/sbin/init splash"),
        ("systemd+", "6540", "/lib/systemd/systemd-timesyncd"),
    ]
    netstat = (
        "Proto Recv-Q Send-Q Local Address           Foreign Address         State\n"
        "tcp        0      0 0.0.0.0:22              0.0.0.0:*               LISTEN\n"
        "tcp6       0      0 :::80                   :::*                    LISTEN\n"
    )
    assert only(netstat).rows[1] == {
        "Proto": "tcp6",
        "Recv-Q": "0",
        "Send-Q": "0",
        "Local Address": ":::80",
        "Foreign Address": ":::*",
        "State": "LISTEN",
    }


def test_ruled_tables() -> None:
    markdown = "See:\n\n| svc | p99 (ms) |\n|-----|---------:|\n| cart | 41 |\n| a\\|b | |\n\ndone"
    assert only(markdown).rows == [{"svc": "cart", "p99 (ms)": "41"}, {"svc": "a|b", "p99 (ms)": ""}]
    assert markdown[only(markdown).end :] == "\n\ndone"
    bare = "a | b\n--- | ---\n1 | 2\n"
    assert only(bare).rows == [{"a": "1", "b": "2"}]
    psql = " id |  name  | total\n----+--------+-------\n  1 | cart   |  3.50\n  2 |        |\n(2 rows)\n"
    assert only(psql).rows == [{"id": "1", "name": "cart", "total": "3.50"}, {"id": "2", "name": "", "total": ""}]
    assert psql[only(psql).end :] == "\n(2 rows)\n"
    mysql = "+----+------+\n| id | name |\n+----+------+\n|  1 | cart |\n+----+------+\n1 row in set\n"
    assert only(mysql).rows == [{"id": "1", "name": "cart"}]
    assert mysql[only(mysql).end :] == "\n1 row in set\n"


def test_a_blank_first_cell_between_bars() -> None:
    table = only(" id | name | v \n----+------+---\n    | x    | 1\n  2 | y    |  \n    |      | 3\n")
    assert table.rows == [
        {"id": "", "name": "x", "v": "1"},
        {"id": "2", "name": "y", "v": ""},
        {"id": "", "name": "", "v": "3"},
    ]
    assert table.flags == ()
    assert only("|  | b |\n|--|---|\n|  | 1 |\n| x | |\n").rows == [
        {"column_0": "", "b": "1"},
        {"column_0": "x", "b": ""},
    ]
    assert only("a | b\n|---|---|\n| 1 | 2 |\n3 | 4\n").rows == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_cells_of_several_lines_in_psql() -> None:
    table = only(
        " id | note   | v  \n----+--------+----\n  1 | line1 +| a +\n    | line2 +| b\n    | + three| \n"
        "  2 | C++    | C+\n    | x      | y\n(3 rows)\n"
    )
    assert table.rows == [
        {"id": "1", "note": "line1\nline2\n+ three", "v": "a\nb"},
        {"id": "2", "note": "C++", "v": "C+"},
        {"id": "", "note": "x", "v": "y"},
    ]
    assert table.flags == ()
    trailing = only(" id | v | n \n----+---+---\n  1 | a+| x+\n    |  +| y\n    |   | \n  2 | b | z\n")
    assert trailing.rows[0] == {"id": "1", "v": "a\n\n", "n": "x\ny"}
    framed = "+----+-------+\n| id | note  |\n+----+-------+\n|  1 | one  +|\n|    | two   |\n+----+-------+\n"
    assert only(framed).rows == [{"id": "1", "note": "one\ntwo"}]


NETSTAT = """\
Proto Recv-Q Send-Q Local Address           Foreign Address         State       PID/Program name
tcp        0      0 0.0.0.0:22              0.0.0.0:*               LISTEN      33/sshd
udp        0      0 0.0.0.0:68              0.0.0.0:*                           33/dhclient
tcp6       0      0 :::80                   :::*                    LISTEN      34/nginx: master
"""


def test_a_blank_cell_among_words() -> None:
    table = only(NETSTAT)
    assert [(row["Local Address"], row["State"], row["PID/Program name"]) for row in table.rows] == [
        ("0.0.0.0:22", "LISTEN", "33/sshd"),
        ("0.0.0.0:68", "", "33/dhclient"),
        (":::80", "LISTEN", "34/nginx: master"),
    ]
    free = (
        "               total        used        free   available\n"
        "Mem:        16265628     5032848     1234567    10876543\n"
        "Swap:        2097148           0     2097148\n"
    )
    assert [list(row.values()) for row in only(free).rows] == [
        ["Mem:", "16265628", "5032848", "1234567", "10876543"],
        ["Swap:", "2097148", "0", "2097148", ""],
    ]


@pytest.mark.parametrize("vsz", ["12345678", "12345678901"])
def test_a_number_too_wide_for_its_column(vsz: str) -> None:
    table = only(
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        "root           1  0.0  0.1 168140 11340 ?        Ss   Jan01   0:09 /sbin/init splash\n"
        f"mysql        612  0.0  0.0 {vsz} 654000 ?        Ssl  Jan01   0:00 mysqld\n"
        "root         700  0.0  0.1      0     0 ?        S    Jan01   0:09 [kthreadd]\n"
    )
    assert list(table.rows[1].items()) == [
        ("USER", "mysql"),
        ("PID", "612"),
        ("%CPU", "0.0"),
        ("%MEM", "0.0"),
        ("VSZ", vsz),
        ("RSS", "654000"),
        ("TTY", "?"),
        ("STAT", "Ssl"),
        ("START", "Jan01"),
        ("TIME", "0:00"),
        ("COMMAND", "mysqld"),
    ]
    assert [row["TTY"] for row in table.rows] == ["?", "?", "?"]


def test_a_text_too_wide_for_its_column() -> None:
    table = only(
        "NAME     READY   STATUS    AGE\n"
        "web-1    1/1     Running   5d\n"
        "checkout-service-7   1/1     Running   6d\n"
        "db-0     0/1     Pending   7d\n"
    )
    assert [list(row.values()) for row in table.rows] == [
        ["web-1", "1/1", "Running", "5d"],
        ["checkout-service-7", "1/1", "Running", "6d"],
        ["db-0", "0/1", "Pending", "7d"],
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_rows_below_capitals_with_units(count: int) -> None:
    rows = ["web-5d8c7   3m           45Mi", "db-0        250m         1024Mi", "cart        1m           4Mi"][:count]
    table = only("\n".join(["NAME        CPU(cores)   MEMORY(bytes)", *rows]) + "\n")
    assert [list(row.values()) for row in table.rows] == [row.split() for row in rows]
    assert list(table.rows[0]) == ["NAME", "CPU(cores)", "MEMORY(bytes)"]


def test_two_rows_of_two_columns_below_capitals() -> None:
    assert only("NAME      AGE\ndefault   5d\nprod      6d\n").rows == [
        {"NAME": "default", "AGE": "5d"},
        {"NAME": "prod", "AGE": "6d"},
    ]


@pytest.mark.parametrize(
    ("text", "size", "last"),
    [
        (
            "Filesystem     1K-blocks     Used Available Use% Mounted on\n"
            "/dev/sda1       51475068 20000000  28000000  42% /\n"
            "tmpfs            8000000        0   8000000   0% /dev/shm\n",
            ("1K-blocks", "51475068"),
            "/dev/shm",
        ),
        (
            "Filesystem Size Used Avail Use% Mounted on\n"
            "/dev/sda1 50G 20G 28G 42% /\n"
            "/dev/sdb1 9G - 1G 90% /data/my dir\n",
            ("Size", "50G"),
            "/data/my dir",
        ),
        (
            "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1        50G   20G   28G  42% /\n",
            ("Size", "50G"),
            "/",
        ),
        (
            "Filesystem    512-blocks Used Available Capacity iused ifree %iused  Mounted on\n"
            "map auto_home          0    0         0   100%       0     0  100%   /System/Volumes/Data/home\n",
            ("512-blocks", "0"),
            "/System/Volumes/Data/home",
        ),
    ],
)
def test_filesystems(text: str, size: tuple[str, str], last: str) -> None:
    for before, behind in (("", ""), ("$ df\n", "$ free\n")):
        (table,) = find(before + text + behind)
        assert next(iter(table.rows[0])) == "Filesystem"
        assert list(table.rows[0].items())[1] == size
        assert table.rows[-1]["Mounted on"] == last
        assert len(table.rows) == text.count("\n") - 1
        assert (before + text + behind)[table.start : table.end] == text.rstrip()


def test_the_biggest_processes_of_ps() -> None:
    """All of them have numbers that are too wide for their columns; nothing else tells where TTY begins."""
    table = only(
        "USER       PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        "root     27489 11.8  3.4 3591588 859460 ?      Rl   20:12   3:32 python -u -c 0:34 x\n"
        "root     32723  4.8  2.0 6448288 513096 ?      SNsl 20:15   1:19 java -Xmx512m kafka.Kafka\n"
    )
    assert [list(row.values()) for row in table.rows] == [
        ["root", "27489", "11.8", "3.4", "3591588", "859460", "?", "Rl", "20:12", "3:32", "python -u -c 0:34 x"],
        ["root", "32723", "4.8", "2.0", "6448288", "513096", "?", "SNsl", "20:15", "1:19", "java -Xmx512m kafka.Kafka"],
    ]
    assert (list(table.rows[0])[5:7], table.flags) == (["RSS", "TTY"], ())


def test_rows_that_are_watched() -> None:
    table = only(
        "NAME                  READY   STATUS        RESTARTS   AGE\n"
        "checkout-5c9f-xk2lp   1/1     Terminating   0          2m10s\n"
        "web-0                 0/1     CrashLoopBackOff   0          5m\n"
        "web-0                 1/1     Error              1 (3s ago)   12s\n"
    )
    assert [list(row.values())[2:] for row in table.rows] == [
        ["Terminating", "0", "2m10s"],
        ["CrashLoopBackOff", "0", "5m"],
        ["Error", "1 (3s ago)", "12s"],
    ]


def test_rows_that_someone_typed() -> None:
    """Three blanks are between any two cells, though they don't stand below their names."""
    table = only(
        "NAME   REFERENCE      TARGETS    MINPODS   REPLICAS   AGE\n"
        "cart   Deployment/c   12%/70%    2         3          5d\n"
        "mail   Deployment/m   cpu: 245%/70%, memory: 91%/80%   2   10   6d\n"
    )
    assert list(table.rows[1].values()) == ["mail", "Deployment/m", "cpu: 245%/70%, memory: 91%/80%", "2", "10", "6d"]


def test_a_row_of_which_it_cannot_be_told() -> None:
    """What is sure of it stays, the rest is no cell of a column; behind the table, lines are no rows."""
    table = only(
        "NAME    READY   STATUS    RESTARTS   AGE\n"
        "web-1   1/1     Running   0          5d\n"
        "web-2   0/1  Error  2 1 (3s ago)  6d  x  y\n"
        "web-3   1/1     Running   0          7d\n"
        "$ kubectl get nodes\n"
    )
    assert [row["NAME"] for row in table.rows] == ["web-1", "web-2", "web-3"]
    assert table.rows[1] == {"NAME": "web-2", "extra_cells": ["0/1  Error  2 1 (3s ago)  6d  x  y"]}
    assert table.flags == ("ragged_rows",)


def test_a_header_that_comes_again_and_another_one() -> None:
    pods = "NAME     CPU(cores)   MEMORY(bytes)\nweb-1    12m          120Mi\nweb-2    3m           45Mi\n"
    nodes = "NAME   CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nn1     321m         16%    2100Mi          55%\n"
    first, second = find(pods * 2 + nodes)
    assert ([row["NAME"] for row in first.rows], first.flags) == (["web-1", "web-2"] * 2, ("concatenated",))
    assert [list(row.values()) for row in second.rows] == [["n1", "321m", "16%", "2100Mi", "55%"]]


def test_frames_in_unicode() -> None:
    """A bar of ASCII is no border there."""
    box = "┌────┬───────┐\n│ id │ name  │\n├────┼───────┤\n│  1 │ ca|rt │\n│  2 │ größe │\n└────┴───────┘\n"
    heavy = "┏━━━━┳━━━━━━━┓\n┃ id ┃ name  ┃\n┡━━━━╇━━━━━━━┩\n│  1 │ ca|rt │\n│  2 │ größe │\n└────┴───────┘\n"
    for text in (box, heavy):
        table = only(f"before\n{text}behind\n")
        assert table.rows == [{"id": "1", "name": "ca|rt"}, {"id": "2", "name": "größe"}]
        assert f"before\n{text}"[table.start : table.end] + "\n" == text


def test_a_tree_in_the_first_column() -> None:
    """As findmnt draws it: its lines are no frame."""
    table = only(
        "TARGET                  SOURCE    FSTYPE  OPTIONS\n"
        "/                       /dev/vda  ext4    rw,relatime\n"
        "├─/sys                  sysfs     sysfs   rw\n"
        "│ ├─/sys/fs/cgroup      tmpfs     tmpfs   rw,mode=755\n"
        "│ │ └─/sys/fs/cgroup/a  cgroup    cgroup  rw\n"
        "└─/proc                 proc      proc    rw\n"
    )
    assert [row["TARGET"] for row in table.rows][2:4] == ["│ ├─/sys/fs/cgroup", "│ │ └─/sys/fs/cgroup/a"]
    assert [row["SOURCE"] for row in table.rows] == ["/dev/vda", "sysfs", "tmpfs", "cgroup", "proc"]


def test_a_bar_in_a_cell_of_psql() -> None:
    """The ruler says where cells end."""
    table = only(
        " pid |         query          | meta \n-----+------------------------+------\n"
        "   1 | SELECT a || b, '日|本' | x|y\n   2 | SELECT a              +| z\n     | || b                   | \n"
    )
    assert [list(row.values()) for row in table.rows] == [
        ["1", "SELECT a || b, '日|本'", "x|y"],
        ["2", "SELECT a\n|| b", "z"],
    ]
    assert table.flags == ()


def test_one_column_of_psql() -> None:
    text = "shop=# select name from t;\n     name     \n--------------\n cart\n web shop\n(2 rows)\n\nshop=# \n"
    assert only(text).rows == [{"name": "cart"}, {"name": "web shop"}]
    assert find(text.replace("(2 rows)", "(3 rows)")) == []
    assert find(text.replace("(2 rows)", "")) == []


def test_records_with_a_line_for_each_cell() -> None:
    mysql = (
        "*************************** 1. row ***************************\n"
        "  id: 1\nnote: a: b\nmore\n\nname: cart\n"
        "*************************** 2. row ***************************\n"
        "  id: 2\nnote: \nname: NULL\n2 rows in set (0.00 sec)\n"
    )
    assert only(mysql).rows == [
        {"id": "1", "note": "a: b\nmore\n", "name": "cart"},
        {"id": "2", "note": "", "name": "NULL"},
    ]
    psql = (
        "-[ RECORD 1 ]----\npid   | 12345\nquery | SELECT a || b+\n      | FROM t\n"
        "-[ RECORD 2 ]----\npid   | 12346\nquery | \n\nshop=# \n"
    )
    assert only(psql).rows == [{"pid": "12345", "query": "SELECT a || b\nFROM t"}, {"pid": "12346", "query": ""}]


def test_reports_of_a_system() -> None:
    """Of sar, whose header begins with a time; of vmstat with one row; of nodetool; the conditions of a pod."""
    sar = (
        "11:40:01        CPU     %user     %idle\n11:50:01        all     12.07     85.77\n"
        "12:00:01        all     52.07     45.77\nAverage:        all     32.07     65.77\n"
    )
    assert only(sar).rows[2] == {"time": "Average:", "CPU": "all", "%user": "32.07", "%idle": "65.77"}
    vmstat = (
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
        " 1  0      0 8503248 570840 10778564    0    0     1     2   10   20  1  2 97  0  0\n"
    )
    assert list(only(vmstat).rows[0].items())[3:6] == [("free", "8503248"), ("buff", "570840"), ("cache", "10778564")]
    nodetool = (
        "--  Address    Load       Tokens  Owns (effective)  Rack\n"
        "UN  10.0.0.1   103.2 GiB  256     33.3%             rack1\n"
        "DN  10.0.0.12  98.07 KiB  256     33.3%             r2\n"
    )
    assert list(only(nodetool).rows[1].values()) == ["DN", "10.0.0.12", "98.07 KiB", "256", "33.3%", "r2"]
    conditions = (
        "Conditions:\n  Type          Status\n  Initialized   True \n  Ready         False \n  Scheduled     True \n"
    )
    assert only(conditions).rows[1] == {"Type": "Ready", "Status": "False"}
