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
const texts = new Map();
for (const name of [...names].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(fs.readFileSync(`${folder}/package.json`));
  const file = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = fs.readFileSync(`${folder}/${file}`, "utf8").trim();
  texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license})`]);
}
for (const [text, users] of texts) console.log(`== ${users.join("\n== ")}\n\n${text}\n`);' >"$here/plot.LICENSES.txt"
