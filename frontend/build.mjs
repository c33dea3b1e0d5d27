// Builds the tab: one ES module `index.js` that exports render(), and beside it the licences of what it contains.
//
//   npm run build -- --outdir DIR      (DIR is relative to this folder; ../tb_bottleneck/plugin/static where left out)
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as esbuild from "esbuild";

const FRONTEND = path.dirname(fileURLToPath(import.meta.url));
const BUDGET_BYTES = 120_000;

/** A style sheet is imported as minified text: the tab puts it into a <style>, so that one file is the whole tab. */
const cssAsText = {
  name: "css-as-text",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path: file }) => {
      const source = await readFile(file, "utf8");
      const { code } = await esbuild.transform(source, { loader: "css", minify: true, target: TARGET });
      return { contents: code.trim(), loader: "text" };
    });
  },
};
const TARGET = "es2022";

/** The folders under node_modules that gave code to the bundle, in alphabetical order. */
function packagesIn(inputs) {
  const found = Object.keys(inputs).map((input) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(found.filter(Boolean))].sort();
}

async function licenceOf(name) {
  const folder = path.join(FRONTEND, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const text = await readFile(path.join(folder, "LICENSE"), "utf8");
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}

async function build(outdir) {
  const { outputFiles, metafile } = await esbuild.build({
    absWorkingDir: FRONTEND,
    entryPoints: ["src/index.tsx"],
    bundle: true,
    format: "esm",
    target: TARGET,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [cssAsText],
    metafile: true,
    write: false,
  });
  const bundle = outputFiles[0].contents;
  if (bundle.length > BUDGET_BYTES) {
    throw new Error(`index.js has ${bundle.length} bytes and the budget is ${BUDGET_BYTES}: leave something out.`);
  }
  const licences = await Promise.all(packagesIn(metafile.inputs).map(licenceOf));
  await mkdir(outdir, { recursive: true });
  await writeFile(path.join(outdir, "index.js"), bundle);
  await writeFile(path.join(outdir, "LICENSES.txt"), `index.js contains:\n\n${licences.join("\n---\n\n")}`);
  console.log(`${path.relative(process.cwd(), path.join(outdir, "index.js"))}  ${bundle.length} bytes`);
}

const { values } = parseArgs({
  options: { outdir: { type: "string", default: "../tb_bottleneck/plugin/static" } },
});
await build(path.resolve(FRONTEND, values.outdir));
