#!/bin/sh
# Makes plot.min.js and plot.LICENSES.txt anew. Needs node, npm and the npm registry; building the
# crate needs none of them, because both results are kept in the repository.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/entry.js" "$work/"
cd "$work"
npm init -y >/dev/null
npm install --ignore-scripts --no-audit --no-fund \
    @observablehq/plot@0.6.17 d3@7.9.2 esbuild@0.28.2 >/dev/null
node_modules/.bin/esbuild entry.js --bundle --minify --format=iife --legal-comments=none \
    --banner:js="/* Observable Plot 0.6.17 and d3 7.9.2, ISC: see the licences in this page. */" \
    --metafile=meta.json --outfile="$here/plot.min.js" --log-level=warning
node -e '
const fs = require("fs");
const { outputs } = JSON.parse(fs.readFileSync("meta.json"));
const inputs = Object.entries(Object.values(outputs)[0].inputs).filter(([, used]) => used.bytesInOutput > 0);
const names = new Set(inputs.map(([path]) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
// By their terms: each project with its copyright notices, then the terms once.
const terms = new Map();
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(fs.readFileSync(`${folder}/package.json`));
  const file = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = fs.readFileSync(`${folder}/${file}`, "utf8").trim();
  const [, notice, rest] = /^((?:Copyright.*\n|\n)*)([^]*)$/.exec(text);
  const users = terms.get(rest) ?? new Map();
  users.set(notice.trim(), [...(users.get(notice.trim()) ?? []), `== ${name} ${version} (${license})`]);
  terms.set(rest, users);
}
for (const [rest, users] of terms) {
  for (const [notice, names] of users) console.log(`${names.join("\n")}\n\n${notice}\n`);
  console.log(`${rest}\n`);
}' >"$here/plot.LICENSES.txt"
