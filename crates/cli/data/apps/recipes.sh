#!/bin/bash
# Makes the models of this directory: each program is set up, recorded once and described.
#   recipes.sh IOSCAPE DIRECTORY     DIRECTORY is emptied; the models are written beside this script
# They were made on ext4, Linux 6.18, as root (eBPF), with SQLite, GNU tar, Git, GNU grep and
# GNU sort.
set -eu
ioscape=$1; work=$2; here=$(cd "$(dirname "$0")" && pwd)

fresh() { rm -rf "$work"; mkdir -p "$work"; cd "$work"; }

model() { # NAME COMMAND…
    name=$1; shift
    sync
    "$ioscape" trace record -q -o "$work/$name.trace" -- "$@" > /dev/null
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

sqlite sqlite-wal wal
sqlite sqlite-delete delete
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
