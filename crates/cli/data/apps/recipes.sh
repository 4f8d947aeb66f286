#!/bin/bash
# Makes the models of this directory: each program is set up, recorded once and described.
#   recipes.sh IOSCAPE DIRECTORY     DIRECTORY is emptied; the models are written beside this script
# They were made on ext4, Linux 6.18, as root (eBPF), with SQLite, PostgreSQL 15, Python, Cargo, GNU tar,
# Git, GNU grep and GNU sort.
set -eu
ioscape=$1; work=$2; here=$(cd "$(dirname "$0")" && pwd)

fresh() { rm -rf "$work"; mkdir -p "$work"; cd "$work"; }

user= # whom the recorded program runs as, where it is not to be root
model() { # NAME COMMAND…
    name=$1; shift
    sync
    "$ioscape" trace record -q ${user:+--user "$user"} -o "$work/$name.trace" -- "$@" > /dev/null
    rm -f "$here/$name.json"
    "$ioscape" trace model "$work/$name.trace" -o "$here/$name.json"
}

# 40,000 accounts; 2000 transactions of an update, a select and an insert each, a cache of 50 pages.
sqlite() { # NAME JOURNAL
    fresh
    sqlite3 t.db "PRAGMA page_size=4096; PRAGMA journal_mode=$2;
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
    model "$1" sqlite3 t.db '.read tx.sql'
}

# 1600 files in 40 directories, sizes log-normal with a median of 5 kB.
tree() {
    fresh
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
    fresh
    pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    mkdir pg && chown -R postgres "$work"
    serve="$pg/postgres -D pg -k $work/pg -h '' -c shared_buffers=16MB -c autovacuum=off >/dev/null 2>&1 &
        until $pg/pg_isready -q -h $work/pg; do sleep 0.01; done"
    setpriv --reuid=postgres --regid=postgres --clear-groups sh -ec "$pg/initdb -D pg -A trust > /dev/null
        $serve; $pg/pgbench -q -i -s 3 -h $work/pg postgres 2> /dev/null; kill -INT \$!; wait"
    user=postgres model postgres-oltp sh -ec "$serve
        $pg/pgbench -n -h $work/pg -c 2 -j 1 -t 2000 --random-seed=7 postgres 2> /dev/null; kill -INT \$!; wait"
}

# What etcd does for each change: 2300 bytes are appended to a file laid out in advance, and synced.
log() {
    fresh
    model etcd-log python3 -c "
import os
f = os.open('wal', os.O_CREAT | os.O_RDWR)
os.posix_fallocate(f, 0, 64 << 20)
for i in range(4000):
    os.write(f, b'x' * 2300)
    os.fdatasync(f)"
}

# A library of 40 modules, built without network.
cargo_build() {
    fresh
    cargo -q new --lib --vcs none built && cd built
    for i in $(seq 40); do
        for j in $(seq 20); do
            echo "pub fn f$j(x: u64) -> u64 { let v: Vec<u64> = (0..x).map(|y| y * $i + $j).collect(); v.iter().sum() }"
        done > "src/m$i.rs"
        echo "pub mod m$i;" >> src/lib.rs
    done
    model cargo-build cargo -q build --offline
}

sqlite sqlite-wal wal
sqlite sqlite-delete delete
postgres; log; cargo_build
tree; model tar-create tar cf a.tar src
tree; tar cf a.tar src; rm -r src; model tar-extract tar xf a.tar
tree; model grep grep -r nothing_of_this src || true
tree; git init -q src; git -C src add -A; git -C src -c user.email=a@b -c user.name=a commit -qm 1
model git-status git -C src status --porcelain
fresh
python3 -c "
import random
random.seed(9)
open('in.txt', 'w').writelines('%016x some filler text here\n' % random.getrandbits(64) for _ in range(1500000))"
mkdir tmp; model sort sort -S 16M --parallel=1 -T tmp in.txt -o out.txt

rm -rf "$work"
