"""Tables as the tools of a console print them, of cells that are known."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A table: its text, the names of its columns, and its cells."""

    text: str
    names: list[str]
    rows: list[list[str]]


AGES = ["3d4h", "47m", "12d", "5s", "2m30s", "<unknown>"]
Cells = Callable[[random.Random], list[str]]

_KUBECTL: dict[str, Cells] = {
    "NAME|READY|STATUS|RESTARTS|AGE|IP|NODE|NOMINATED NODE|READINESS GATES": lambda r: [
        f"cart-{r.randrange(10 ** r.randint(1, 9))}",
        r.choice(["1/1", "0/2"]),
        r.choice(["Running", "Init:0/1", "Error"]),
        r.choice(["0", "12 (3m2s ago)", "1 (26h ago)"]),
        r.choice(AGES),
        r.choice(["10.1.2.3", "<none>"]),
        r.choice(["n1", "node-22"]),
        "<none>",
        "<none>",
    ],
    "NAME|READY|STATUS|RESTARTS|AGE": lambda r: [
        r.choice(["web-0", "checkout-5c9f"]),
        "1/1",
        r.choice(["Running", "Error", "Pending"]),
        r.choice(["0", "1 (3s ago)", "11 (2m40s ago)"]),
        r.choice(AGES),
    ],
    "NAME|CLASS|HOSTS|ADDRESS|PORTS|AGE": lambda r: [
        r.choice(["a", "b"]),
        "nginx",
        r.choice(["a.io,b.io", "*"]),
        r.choice(["", "10.0.0.9"]),
        "80, 443",
        r.choice(AGES),
    ],
    "NAME|REFERENCE|TARGETS|MINPODS|MAXPODS|REPLICAS|AGE": lambda r: [
        r.choice(["cart", "checkout-web"]),
        "Deployment/" + r.choice(["cart", "checkout"]),
        r.choice(["cpu: 245%/70%, memory: 91%/80%", "cpu: <unknown>/70%", "245%/70%"]),
        "2",
        "10",
        "7",
        r.choice(AGES),
    ],
    "LAST SEEN|TYPE|REASON|OBJECT|SUBOBJECT|MESSAGE": lambda r: [
        r.choice(["3m2s", "2m (x45 over 47m)", "200m (x5 over 9h)"]),
        r.choice(["Normal", "Warning"]),
        "BackOff",
        f"pod/a-{r.randrange(10**6)}",
        r.choice(["", "spec.containers{cart}"]),
        r.choice(["Back-off restarting", "0/3 nodes are available: 3 Insufficient cpu.", "got  two blanks"]),
    ],
    "NAME|CPU(cores)|MEMORY(bytes)": lambda r: [
        r.choice(["a", "checkout-5c9f"]),
        r.choice(["12m", "3"]),
        r.choice(["1Gi", "980Mi"]),
    ],
    "NAME|COMPLETIONS|DURATION|AGE": lambda r: [
        r.choice(["j1", "job-two"]),
        "1/1",
        r.choice(["", "3m"]),
        r.choice(AGES),
    ],
    "CONTAINER ID|IMAGE|COMMAND|CREATED|STATUS|PORTS|NAMES": lambda r: [
        f"{r.getrandbits(48):012x}",
        r.choice(["web:1", "postgres:16"]),
        r.choice(['"docker-entrypoint.s…"', '"/bin/sh -c \'sleep 1"']),
        r.choice(["2 hours ago", "About a minute ago"]),
        r.choice(["Up 3 weeks (healthy)", "Exited (0) 3 days ago"]),
        r.choice(["", "0.0.0.0:5432->5432/tcp, :::5432->5432/tcp"]),
        r.choice(["web", "shop_cart_1"]),
    ],
    "CONTAINER ID|NAME|CPU %|MEM USAGE / LIMIT|MEM %|NET I/O|BLOCK I/O|PIDS": lambda r: [
        f"{r.getrandbits(48):012x}",
        r.choice(["web", "db"]),
        r.choice(["101.23%", "0.00%"]),
        r.choice(["1.95GiB / 2GiB", "512MiB / 7.6GiB"]),
        r.choice(["97.50%", "0.58%"]),
        r.choice(["1.2GB / 3.4GB", "648B / 0B"]),
        r.choice(["12.3MB / 0B", "0B / 8.19kB"]),
        r.choice(["45", "1"]),
    ],
    "REPOSITORY|TAG|IMAGE ID|CREATED|SIZE": lambda r: [
        r.choice(["web", "<none>", "reg.local/a/b"]),
        r.choice(["1.2", "<none>"]),
        f"{r.getrandbits(48):012x}",
        r.choice(["2 hours ago", "3 weeks ago"]),
        r.choice(["1.2GB", "130MB"]),
    ],
}


def tabbed(r: random.Random) -> Printed:
    """As kubectl and docker print: each column as wide as its widest cell and some blanks."""
    columns, cells = r.choice(list(_KUBECTL.items()))
    names, rows = columns.split("|"), [cells(r) for _ in range(r.choice([1, 2, 3, 8, 20]))]
    padding, bare = r.choice([2, 3, 3]), r.random() < 0.5
    widths = [max(map(len, column)) + padding for column in zip(names, *rows, strict=True)][:-1]
    lines = ["".join(map(str.ljust, row, widths)) + row[-1] for row in [names, *rows]]
    return Printed("\n".join(line.rstrip() if bare else line for line in lines) + "\n", names, rows)


def watched(r: random.Random) -> Printed:
    """As `kubectl get -w` prints: a column grows when a wider cell comes, for the lines from there on."""
    columns, cells = r.choice(list(_KUBECTL.items())[:5])
    names = columns.split("|")
    widths, rows, text = [0] * (len(names) - 1), list[list[str]](), ""
    for count in (r.choice([1, 2, 3]), *[1] * r.choice([2, 5, 10])):
        batch = [cells(r) for _ in range(count)]
        for row in batch:
            if row[2] in ("Running", "Error"):
                row[2] = r.choice(["Running", "Error", "CrashLoopBackOff", "ContainerCreating", "OOMKilled"])
        shown = [*([] if rows else [names]), *batch]
        widths = [max(width, *(len(row[c]) + 3 for row in shown)) for c, width in enumerate(widths)]
        text += "".join("".join(map(str.ljust, row, widths)) + row[-1] + "\n" for row in shown)
        rows += batch
    return Printed(text, names, rows)


def _printed(columns: list[tuple[str, int]], rows: list[list[str]], recovers: bool) -> Printed:
    """Cells in columns of so many characters (negative: set to the right) with a blank between them. Behind a cell that
    is too wide all others are pushed to the right, or only those that have to be."""
    names, text = [name for name, _ in columns], ""
    for row in [names, *rows]:
        line, place = "", 0
        for (_, width), cell in zip(columns, row, strict=True):
            blanks = max(abs(width) - len(cell), 0) if width < 0 else 0
            start = place + blanks if recovers else (len(line) + (place > 0) if width else len(line) + 1) + blanks
            if line:
                start = max(start, len(line) + 1)
            line = line.ljust(start) + cell
            place += abs(width) + 1
            if not recovers and width > 0:
                line = line.ljust(len(line) + max(width - len(cell), 0))
        text += line.rstrip() + "\n"
    return Printed(text, names, rows)


def processes(r: random.Random) -> Printed:
    """As ps prints: numbers to the right; a cell too wide pushes the ones behind it, as far as they have to."""
    wide = r.random() < 0.5
    columns = {
        "USER": (8, ["root", "app", "systemd+"]),
        "PID": (-r.choice([5, 7]), ["1", "234", "12345"]),
        "%CPU": (-4, ["0.0", "98.7", "198"]),
        "%MEM": (-4, ["0.0", "45.2"]),
        "VSZ": (-6, ["9876543", "12345678", "123456789"] if wide else ["0", "169432", "9876543"]),
        "RSS": (-5, ["811376", "1234567"] if wide else ["0", "11788", "98763", "811376"]),
        "TTY": (8, ["?", "pts/0", "tty1"]),
        "STAT": (4, ["Ss", "Sl", "Ssl", "I<", "SNsl"]),
        "START": (-5, ["Jan29", "11:02", "2025"]),
        "TIME": (-6, ["0:03", "47:12", "1234:56"]),
        "COMMAND": (15, ["nginx", "tmux: server", "kworker/0:0-events"]),
        "ARGS": (0, ["/sbin/init splash", "java -Xmx8g -jar app.jar", "[kworker/0:0H]", "a 0:34 b", " \\_ sh -c x"]),
    }
    kinds = [
        [name for name in columns if name != "COMMAND"],
        ["PID", "COMMAND", "RSS", "STAT", "ARGS"],
        ["PID", "STAT", "RSS", "ARGS"],
        ["PID", "%CPU", "%MEM", "VSZ", "RSS", "ARGS"],
        ["USER", "PID", "START", "TTY", "TIME", "ARGS"],
    ]
    names = r.choice(kinds)
    rows = [[r.choice(columns[name][1]) for name in names] for _ in range(r.choice([2, 3, 5, 12, 40]))]
    if r.random() < 0.3:
        rows.sort(key=lambda row: row[min(4, len(row) - 2)])
    return _printed([(name, columns[name][0]) for name in names], rows, True)


def connections(r: random.Random) -> Printed:
    """As netstat prints: names of two words, a blank state, a program with blanks; a long address pushes the rest."""
    columns = [
        ("Proto", 5),
        ("Recv-Q", -6),
        ("Send-Q", -6),
        ("Local Address", 23),
        ("Foreign Address", 23),
        ("State", 11),
    ]
    columns += [("PID/Program name", 0)] if r.random() < 0.5 else []
    long = r.random() < 0.3
    rows = [
        [
            proto := r.choice(["tcp", "tcp6", "udp"]),
            r.choice(["0", "12", "1048576"] if long else ["0", "12"]),
            "0",
            r.choice(["10.0.0.7:43210", ":::80", *["fe80::f816:3eff:fe5e:1:546"] * long]),
            r.choice(["0.0.0.0:*", "10.0.0.9:5432"]),
            "" if proto == "udp" else r.choice(["LISTEN", "ESTABLISHED", "CLOSE_WAIT"]),
            r.choice(["33/sshd", "34/nginx: master", "-"]),
        ][: len(columns)]
        for _ in range(r.choice([2, 3, 10, 30]))
    ]
    return _printed(columns, rows, False)


def counted(r: random.Random) -> Printed:
    """As vmstat prints: numbers to the right, and behind a wide one all others are pushed."""
    names = [
        "r",
        "b",
        "swpd",
        "free",
        "buff",
        "cache",
        "si",
        "so",
        "bi",
        "bo",
        "in",
        "cs",
        "us",
        "sy",
        "id",
        "wa",
        "st",
    ]
    widths = [2, 2, 6, 6, 6, 6, 4, 4, 5, 5, 4, 4, 2, 2, 2, 2, 2]
    rows = [
        [str(r.randrange(10 ** r.randint(1, width + (width > 5) * 2))) for width in widths]
        for _ in range(r.choice([2, 3, 10]))
    ]
    return _printed([(name, -width) for name, width in zip(names, widths, strict=True)], rows, False)


def measured(r: random.Random) -> Printed:
    """As Elasticsearch's `_cat` and top print: texts to the left, numbers to the right, none too wide."""
    kinds: dict[str, Cells] = {
        "health|status|index|uuid|-pri|-rep|-docs.count|-store.size": lambda r: [
            r.choice(["green", "yellow"]),
            r.choice(["open", "close"]),
            r.choice(["shop", "logs-2026.01.30"]),
            f"u{r.getrandbits(30)}",
            "1",
            r.choice(["0", "1"]),
            str(r.randrange(10 ** r.randint(1, 8))),
            r.choice(["208b", "1.2gb"]),
        ],
        "ip|-heap.percent|-ram.percent|-cpu|-load_1m|node.role|master|name": lambda r: [
            r.choice(["10.0.0.1", "10.0.0.21"]),
            str(r.randrange(100)),
            str(r.randrange(100)),
            str(r.randrange(100)),
            f"{r.random() * 9:.2f}",
            "dimr",
            r.choice(["*", "-"]),
            r.choice(["es-1", "es-master-2"]),
        ],
        "-PID|USER|-PR|-NI|-VIRT|-RES|-SHR|S|-%CPU|-%MEM|-TIME+|COMMAND": lambda r: [
            str(r.randrange(10**7)),
            r.choice(["root", "app"]),
            r.choice(["20", "rt"]),
            r.choice(["0", "-20", "5"]),
            r.choice(["1511704", "20.1g"]),
            r.choice(["149284", "0"]),
            r.choice(["57880", "0"]),
            r.choice("SRDI"),
            r.choice(["0.0", "123.5"]),
            r.choice(["0.0", "10.6"]),
            r.choice(["0:15.91", "1234:56"]),
            r.choice(["java", "python"]),
        ],
    }
    columns, cells = r.choice(list(kinds.items()))
    marked = columns.split("|")
    names, rows = [name.lstrip("-") for name in marked], [cells(r) for _ in range(r.choice([2, 3, 10]))]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    widths = [-width if name[0] == "-" else width for name, width in zip(marked, widths, strict=True)]
    return _printed(list(zip(names, widths, strict=True)), rows, True)


def queried(r: random.Random) -> Printed:
    """As psql prints."""
    names = ["pid", "state", "query"]
    rows = [
        [
            str(r.randrange(10**5)),
            r.choice(["active", "idle in transaction", ""]),
            r.choice(["SELECT 1", "SELECT * FROM t WHERE a || b = 'x'", "a | b", "| x |", "größe|"]),
        ]
        for _ in range(r.choice([1, 2, 5]))
    ]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [" | ".join(map(str.center, names, widths)), "-+-".join("-" * width for width in widths)]
    lines += [" | ".join([row[0].rjust(widths[0]), row[1].ljust(widths[1]), row[2]]) for row in rows]
    text = "\n".join(f" {line}" if "-+-" not in line[: widths[0] + 3] else f"-{line}-" for line in lines)
    return Printed(f"{text}\n({len(rows)} rows)\n", names, rows)


PRINTERS: list[Callable[[random.Random], Printed]] = [
    tabbed,
    watched,
    processes,
    connections,
    counted,
    measured,
    queried,
]
