#!/bin/bash
# Programs whose models are in this directory: how each is set up, and the command that is recorded.
#   recipes.sh models IOSCAPE DIRECTORY [NAME…]   makes the models, all or some, beside this script
#   recipes.sh prepare NAME DIRECTORY             empties DIRECTORY, sets the program up there, and prints the
#                                                 user to run it as and its command, a NUL after each word
#   recipes.sh names
# They were made on ext4, Linux 6.18, as root (eBPF), with SQLite, PostgreSQL 15, RocksDB 7.8, nginx 1.22,
# Python, Cargo, GNU tar, Git, GNU grep and GNU sort.
set -eu
names=(cargo-build etcd-log git-status grep nginx postgres-oltp rocksdb-ycsb-a sort sqlite-delete sqlite-wal tar-create tar-extract)
here=$(cd "$(dirname "$0")" && pwd)
user=root
command=()

# 40,000 accounts; 2000 transactions of an update, a select and an insert each, a cache of 50 pages.
sqlite() { # JOURNAL
    sqlite3 t.db "PRAGMA page_size=4096; PRAGMA journal_mode=$1;
        CREATE TABLE accounts(id INTEGER PRIMARY KEY, balance INT, filler TEXT);
        CREATE TABLE history(id INTEGER PRIMARY KEY, a INT, d INT);
        WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<40000)
        INSERT INTO accounts SELECT x, 0, hex(randomblob(50)) FROM c;" > /dev/null
    python3 - > tx.sql <<P
import random
random.seed(5)
print("PRAGMA synchronous=FULL; PRAGMA cache_size=50;")
for i in range(2000):
    print(f"BEGIN; UPDATE accounts SET balance=balance+1 WHERE id={random.randint(1,40000)}; "
          f"SELECT balance FROM accounts WHERE id={random.randint(1,40000)}; "
          f"INSERT INTO history(a,d) VALUES({i},1); COMMIT;")
P
    command=(sqlite3 t.db '.read tx.sql')
}

# 1600 files in 40 directories, sizes log-normal with a median of 5 kB.
tree() {
    python3 - <<P
import os, random
random.seed(3)
for d in range(40):
    os.makedirs(f"src/d{d}")
    for f in range(40):
        n = int(random.lognormvariate(8.5, 1.2))
        open(f"src/d{d}/f{f}.txt", "wb").write((b"int value_%d;\n" % f) * (n // 14 + 1))
P
}

# pgbench's own mix (TPC-B) of two clients, 2000 transactions each, over three branches and 16 MB of buffers.
postgres() {
    pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    mkdir pg && chown -R postgres .
    serve="$pg/postgres -D pg -k $PWD/pg -h '' -c shared_buffers=16MB -c autovacuum=off >/dev/null 2>&1 &
        until $pg/pg_isready -q -h $PWD/pg; do sleep 0.01; done"
    setpriv --reuid=postgres --regid=postgres --clear-groups sh -ec "$pg/initdb -D pg -A trust > /dev/null
        $serve; $pg/pgbench -q -i -s 3 -h $PWD/pg postgres 2> /dev/null; kill -INT \$!; wait" > /dev/null
    user=postgres
    command=(sh -ec "$serve
        $pg/pgbench -n -h $PWD/pg -c 2 -j 1 -t 2000 --random-seed=7 postgres 2> /dev/null; kill -INT \$!; wait")
}

# YCSB's mix A: 400,000 keys with values of 400 bytes; two threads that read and write in halves, 30,000 operations each,
# with a block cache of 8 MB and write buffers of 4 MB, so that tables are written and merged. The log is not synced, as by default.
rocksdb() {
    common="--db=db --value_size=400 --cache_size=8388608 --write_buffer_size=4194304 --target_file_size_base=4194304 --compression_type=none --seed=7 --progress_reports=0"
    db_bench --benchmarks=filluniquerandom --num=400000 $common > /dev/null 2>&1
    command=(db_bench --benchmarks=readrandomwriterandom --use_existing_db --num=400000 --threads=2 --reads=30000
        --readwritepercent=50 $common)
}

# One worker of nginx sends 20,000 files of a site of 2000 to one client that keeps its connection; popularity by Zipf's law (0.8),
# sizes log-normal with a median of 5 kB.
nginx_static() {
    mkdir site logs
    python3 - <<P
import itertools, random
random.seed(11)
for f in range(2000):
    open(f"site/{f}.html", "wb").write(b"x" * int(random.lognormvariate(8.5, 1.2)))
weights = list(itertools.accumulate(1 / (rank + 1) ** 0.8 for rank in range(2000)))
asked = random.choices(range(2000), cum_weights=weights, k=20000)
open("client.py", "w").write(f"""
import http.client
server = http.client.HTTPConnection("127.0.0.1", 18181)
for f in {asked}:
    server.request("GET", f"/{{f}}.html")
    server.getresponse().read()
""")
open("nginx.conf", "w").write("""
user root; daemon off; worker_processes 1; pid logs/pid; error_log logs/error;
events {}
http { access_log logs/access; keepalive_requests 1000000; sendfile on;
       server { listen 127.0.0.1:18181; root site; } }
""")
P
    command=(sh -ec "nginx -p $PWD -c $PWD/nginx.conf & trap 'kill -QUIT \$! 2> /dev/null; wait' EXIT
        until [ -s logs/pid ]; do kill -0 \$!; sleep 0.01; done
        python3 client.py")
}

# What etcd does for each change: 2300 bytes are appended to a file laid out in advance, and synced.
log() {
    command=(python3 -c "
import os
f = os.open('wal', os.O_CREAT | os.O_RDWR)
os.posix_fallocate(f, 0, 64 << 20)
for i in range(4000):
    os.write(f, b'x' * 2300)
    os.fdatasync(f)")
}

# A library of 40 modules, built without network.
cargo_build() {
    cargo -q new --lib --vcs none built
    for i in $(seq 40); do
        for j in $(seq 20); do
            echo "pub fn f$j(x: u64) -> u64 { let v: Vec<u64> = (0..x).map(|y| y * $i + $j).collect(); v.iter().sum() }"
        done > "built/src/m$i.rs"
        echo "pub mod m$i;" >> built/src/lib.rs
    done
    command=(cargo -q build --offline --manifest-path built/Cargo.toml)
}

# 1.5 million lines of 39 bytes, with memory for a quarter of them.
sort_lines() {
    python3 -c "
import random
random.seed(9)
open('in.txt', 'w').writelines('%016x some filler text here\n' % random.getrandbits(64) for _ in range(1500000))"
    mkdir tmp
    command=(sort -S 16M --parallel=1 -T tmp in.txt -o out.txt)
}

# What git knows of a file is not trusted if the file is as young as its index: it is read anew. These are older.
git_status() {
    tree
    find src -exec touch -d 2024-01-01 {} +
    git init -q src
    git -C src add -A
    git -C src -c user.email=a@b -c user.name=a commit -qm 1
    command=(git -C src status --porcelain)
}

prepare() { # NAME DIRECTORY
    [[ " ${names[*]} " == *" $1 "* ]] || { echo "recipes.sh: no program $1: ${names[*]}" >&2; exit 2; }
    rm -rf "$2"
    mkdir -p "$2"
    cd "$2"
    case $1 in
    cargo-build) cargo_build ;;
    etcd-log) log ;;
    git-status) git_status ;;
    grep) tree; command=(grep -r nothing_of_this src) ;;
    nginx) nginx_static ;;
    postgres-oltp) postgres ;;
    rocksdb-ycsb-a) rocksdb ;;
    sort) sort_lines ;;
    sqlite-delete) sqlite delete ;;
    sqlite-wal) sqlite wal ;;
    tar-create) tree; command=(tar cf a.tar src) ;;
    tar-extract) tree; tar cf a.tar src; rm -r src; command=(tar xf a.tar) ;;
    esac
    sync
}

case ${1-} in
names) printf '%s\n' "${names[@]}" ;;
prepare)
    prepare "$2" "$3"
    printf '%s\0' "$user" "${command[@]}"
    ;;
models)
    ioscape=$(realpath "$2") work=$(realpath -m "$3")
    shift 3
    for name in "${@:-${names[@]}}"; do
        user=root
        prepare "$name" "$work"
        "$ioscape" trace record -q --user $user -o "$work.trace" -- "${command[@]}" > /dev/null || [ "$name" = grep ]
        rm -f "$here/$name.json"
        "$ioscape" trace model "$work.trace" -o "$here/$name.json"
        cd "$here"
    done
    rm -rf "$work" "$work.trace"
    ;;
*) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
