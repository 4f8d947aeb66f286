#!/usr/bin/env python3
"""Makes the models specweb96 and surge of this directory from what was published about them.

usage: sites.py IOSCAPE      writes specweb96.json and surge.json beside this script

Of each the site is written as published; an hour of log is drawn from it and described by IOSCAPE, so that the model also says what a
server that sends these files asks of its storage.

specweb96: https://www.spec.org/osg/web96/workload.html. Four classes of files with 35, 50, 14 and 1 % of the requests; nine sizes in each,
   1 to 9 times 0.1, 1, 10 and 100 KiB, asked for as often as a Poisson distribution around the middle one says; directories of 36 files,
   ten times the square root of a fifth of the requests per second: here 100 of them, for 500 per second. A connection per request.
surge: Barford and Crovella, Generating Representative Web Workloads (SIGMETRICS 1998), table of model distributions. Sizes: log-normal
   (9.357, 1.318), 7 % of the files Pareto (133 KB, 1.1); popularity: Zipf; objects per page: Pareto (1, 2.43); time between objects:
   Weibull (1.46 s, 0.382); between pages: Pareto (1 s, 1.5). 2,000 files, 100 users at a time who leave after 100 requests; how long a
   visitor stays, and that sizes say nothing of popularity, is not SURGE's; nor are the cuts at 50 MB, 30 s and 600 s, that pages and
   objects are told apart, and that the number of objects on a page has the published mean and not its distribution.
"""
import bisect, itertools, json, math, pathlib, random, subprocess, sys, tempfile

HERE, HOUR_S = pathlib.Path(__file__).resolve().parent, 3600
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def specweb96():
    poisson = [math.exp(-5) * 5 ** k / math.factorial(k) for k in range(1, 10)]
    requests = 500 * HOUR_S
    files = []
    for share, unit in zip((0.35, 0.50, 0.14, 0.01), (102.4, 1024, 10240, 102400)):
        for k in range(1, 10):
            size = int(unit * k)
            files.append({"kind": "page", "files": 100, "requests": round(requests * share * poisson[k - 1] / sum(poisson)), "bytes_min": size, "bytes_max": size})
    files.sort(key=lambda group: -group["requests"])
    requests = sum(group["requests"] for group in files)
    return {"elapsed_s": HOUR_S, "requests": requests, "sessions": requests, "sessions_mean": 0, "directories": 100, "files": files,
            "profiles": [{"lengths": [[1, 1, requests]], "first": [requests, 0]}], "starts": [requests // 12] * 12}


def counted(quantile, count):
    """A distribution as [from, to, count] in milliseconds, four cells to a doubling, by its quantiles."""
    cells = {}
    for at in range(count):
        ms = max(1, round(1000 * quantile((at + 0.5) / count)))
        cell = cells.setdefault(ms if ms < 16 else 16 + int(4 * math.log2(ms / 16)), [ms, ms, 0])
        cell[:2], cell[2] = [min(cell[0], ms), max(cell[1], ms)], cell[2] + 1
    return [cells[key] for key in sorted(cells)]


def surge():
    rng = random.Random(1998)
    pareto = lambda k, alpha: lambda p: k * (1 - p) ** (-1 / alpha)
    sizes = []
    while len(sizes) < 1860:
        size = rng.lognormvariate(9.357, 1.318)
        if size < 133_000:
            sizes.append(int(size) + 1)
    sizes += [int(min(pareto(133_000, 1.1)((at + 0.5) / 140), 50e6)) for at in range(140)]
    rng.shuffle(sizes)
    objects_per_page = sum(n ** -2.43 for n in range(1, 1000))
    sessions, length = 3000, 100
    requests = sessions * length
    pages = round(requests / (1 + objects_per_page))
    groups = {}
    for kind, total, own in (("page", pages, sizes[:1000]), ("object", requests - pages, sizes[1000:])):
        zipf = sum(1 / rank for rank in range(1, 1001))
        for rank, size in enumerate(own, 1):
            cell = (kind, rank if rank <= 40 else 40 + int(3 * math.log2(rank / 40)), 0 if rank <= 40 else int(math.log2(size) / 2))
            group = groups.setdefault(cell, {"kind": kind, "files": 0, "requests": 0, "bytes_min": size, "bytes_max": size})
            group["files"] += 1
            group["requests"] += max(1, round(total / rank / zipf))
            group["bytes_min"], group["bytes_max"] = min(group["bytes_min"], size), max(group["bytes_max"], size)
    files = sorted(groups.values(), key=lambda group: -group["requests"] / group["files"])
    to_object = requests - pages - pages
    weibull = lambda p: min(30, 1.46 * (-math.log(1 - p)) ** (1 / 0.382))
    profile = {"lengths": [[length, length, sessions]], "first": [sessions, 0], "after_page": [0, pages], "after_object": [pages - sessions, to_object],
               "page_gaps_ms": counted(lambda p: min(600, pareto(1, 1.5)(p)), pages), "object_gaps_ms": counted(weibull, requests - pages)}
    gaps_s = sum((low + high) / 2000 * count for low, high, count in profile["page_gaps_ms"] + profile["object_gaps_ms"])
    elapsed_s = gaps_s / 100
    return {"elapsed_s": round(elapsed_s), "requests": requests, "sessions": sessions, "sessions_mean": 100, "directories": 40, "files": files,
            "profiles": [profile], "starts": [sessions // 12] * 12}


def stamp(at_s):
    return f"01/{MONTHS[0]}/2024:{int(at_s) // 3600:02}:{int(at_s) // 60 % 60:02}:{int(at_s) % 60:02}.{int(at_s * 1000) % 1000:03} +0000"


def log(site, requests, path):
    """A log of so many requests, drawn from a site."""
    rng = random.Random(7)
    table = {}
    first = 0
    for kind in ("page", "object"):
        own = []
        for group in site["files"]:
            if group["kind"] != kind:
                continue
            own += [(group["requests"] / group["files"], first + at, group) for at in range(group["files"])]
            first += group["files"]
        table[kind] = (list(itertools.accumulate(one[0] for one in own)), own)
    profile = site["profiles"][0]
    length = profile["lengths"][0][0]
    lines = []
    for session in range(max(1, requests // length)):
        at_s, kind = rng.random() * HOUR_S, "page"
        for _ in range(length):
            sums, own = table[kind]
            _, number, group = own[bisect.bisect_left(sums, rng.random() * sums[-1])]
            size = random.Random(number).randint(group["bytes_min"], group["bytes_max"])
            ending = "html" if kind == "page" else "png"
            lines.append((at_s, f'10.0.{session >> 8}.{session & 255} - - [{stamp(at_s)}] "GET /d{number % site["directories"]}/{number}.{ending} HTTP/1.1" 200 {size}'))
            after = profile.get(f"after_{kind}", [1, 0])
            kind = rng.choices(["page", "object"], after)[0] if sum(after) else "page"
            gaps = profile.get(f"{kind}_gaps_ms", [])
            if gaps:
                low, high, _ = rng.choices(gaps, [gap[2] for gap in gaps])[0]
                at_s = min(at_s + rng.uniform(low, high) / 1000, 86_399)
    path.write_text("".join(line + "\n" for _, line in sorted(lines)))


for name, site in (("specweb96", specweb96()), ("surge", surge())):
    with tempfile.TemporaryDirectory() as below:
        below = pathlib.Path(below)
        log(site, 100_000, below / "log")
        subprocess.run([sys.argv[1], "trace", "import", "clf", below / "log", "-o", below / "trace", "-q"], check=True)
        subprocess.run([sys.argv[1], "trace", "model", below / "trace", "-o", below / "json"], check=True)
        app = json.loads((below / "json").read_text())
        app["site"] = site
        (HERE / f"{name}.json").write_text(json.dumps(app, separators=(",", ":")) + "\n")
