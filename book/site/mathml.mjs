// Sets TeX as MathML. A line of JSON in, {"tex", "display"}, one out, {"html"} or {"error"}.
import { createInterface } from "node:readline";
import temml from "temml";

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    const { tex, display } = JSON.parse(line);
    said = { html: temml.renderToString(tex, { displayMode: display, throwOnError: true, strict: true }) };
  } catch (error) {
    said = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
