// Bundles src/main.js into one classic script, ../static/explorer.js. Classic, because ES modules
// do not load over file://. The same input gives the same bytes, and a test holds it to that.
import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../static/explorer.js"));

const result = await build({
  entryPoints: [join(here, "src/main.js")],
  absWorkingDir: here,
  bundle: true,
  format: "iife",
  target: "es2020",
  minify: true,
  charset: "utf8",
  legalComments: "none", // the licences of everything bundled are in the header below
  metafile: true,
  write: false,
});

/** The packages that really ended up in the bundle, by name. */
function packages(metafile) {
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const names = used.map(([path]) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

/** A package's licence file, split into its copyright lines and the terms. */
function licence(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name}: no licence file to quote in the bundle.`);
  const paragraphs = readFileSync(join(folder, file), "utf8").split(/\n\s*\n/).map((p) => p.replace(/\s+/g, " ").trim());
  const copyright = paragraphs.filter((p) => /^copyright/i.test(p)).map((p) => p.replace(/ Permission to use.*/, ""));
  const terms = paragraphs.filter((p) => p && !/^(copyright|(the )?(isc|mit) licen[cs]e)/i.test(p)).join("\n\n");
  return { title: `${name} ${version} (${license}). ${copyright.join(" ")}`, terms };
}

/** One notice per set of terms, each with the packages that are under it. */
function notices(names) {
  const groups = new Map();
  for (const { title, terms } of names.map(licence)) groups.set(terms, [...(groups.get(terms) ?? []), title]);
  return [...groups].map(([terms, titles]) => [...titles, "", terms].join("\n")).join("\n\n---\n\n");
}

const header = [
  "/*! The Inference Roofline: explorer and self-checks. Apache-2.0. Built by book/site/frontend/build.mjs: don't edit.",
  "",
  "Bundled, with thanks:",
  "",
  notices(packages(result.metafile)).replaceAll("*/", "* /"),
  "*/",
  "",
].join("\n");

const text = header + result.outputFiles[0].text;
writeFileSync(`${out}.tmp`, text);
renameSync(`${out}.tmp`, out);
console.log(`${out}: ${text.length} characters`);
