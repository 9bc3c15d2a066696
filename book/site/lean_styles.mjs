// Takes out of stylesheets what no page and no script of a folder names. A line of JSON in, {"folder", "styles"}, and
// one out: {"sizes": {style: [before, after]}} or {"error"}. Files are replaced whole.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PurgeCSS } from "purgecss";

async function lean({ folder, styles }) {
  const css = styles.map((name) => join(folder, name));
  const kept = await new PurgeCSS().purge({
    content: [`${folder}/**/*.html`, `${folder}/**/*.js`], css,
    defaultExtractor: (text) => [...new Set(text.match(/[\w-]+/g) ?? [])],
  });
  return Object.fromEntries(kept.map(({ file, css: text }, i) => {
    const before = readFileSync(file).length;
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
    return [styles[i], [before, Buffer.byteLength(text)]];
  }));
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = { sizes: await lean(JSON.parse(line)) };
  } catch (error) {
    said = { error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
