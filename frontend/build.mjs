// Builds the tab: the ES module `index.js` that exports render(), one file per view beyond the first screen, and the
// licences of the bundled packages.
//
//   npm run build -- --outdir DIR      (DIR is relative to this folder; default: ../tb_bottleneck/plugin/static)
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as esbuild from "esbuild";

const FRONTEND = path.dirname(fileURLToPath(import.meta.url));
const BUDGET_BYTES = 120_000;

/** Imports style sheets as minified text, which the tab adds as a <style>. */
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

/** The packages in node_modules that are part of the bundle, in alphabetical order. */
function packagesIn(inputs) {
  const names = Object.keys(inputs).map((input) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

async function licenceOf(name) {
  const folder = path.join(FRONTEND, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const text = await readFile(path.join(folder, "LICENSE"), "utf8");
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}

/** What is fetched first: of a single training its report, of several the overview. */
const FIRST_SCREENS = {
  "first screen of one training": ["src/app/recording.tsx", "src/features/diagnosis/efficiency.tsx"],
  "first screen of several": ["src/features/overview/overview.tsx"],
};

/** The files of a first screen: the entry, its views, and everything that they import statically. */
function filesOf(outputs, views) {
  const needed = new Set();
  const visit = (file) => {
    if (needed.has(file)) return;
    needed.add(file);
    for (const { path: imported, kind } of outputs[file].imports) if (kind === "import-statement") visit(imported);
  };
  visit("out/index.js");
  for (const view of views) visit(Object.keys(outputs).find((file) => outputs[file].entryPoint === view));
  return [...needed];
}

/** The sizes of the first screens in bytes. */
function firstScreens(outputs) {
  return Object.entries(FIRST_SCREENS).map(([name, views]) => [name, filesOf(outputs, views).reduce((sum, file) => sum + outputs[file].bytes, 0)]);
}

const ENTRY = "src/app/index.tsx";
const CORE = "core:"; // a module that imports what the entry needs

/**
 * Puts everything that the entry needs into one file. esbuild makes a file of each set of modules that the same views
 * need, although what the entry needs is there whenever a view is: the first screen was 39 files. If the entry
 * and every view import all of it, it is one set.
 */
function inOneFile(outputs) {
  const core = filesOf(outputs, []).flatMap((file) => Object.keys(outputs[file].inputs)).filter((input) => input !== ENTRY);
  const views = new Set(Object.values(outputs).map(({ entryPoint }) => entryPoint)); // and the entry
  return {
    name: "core-in-one-file",
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${CORE}$`) }, () => ({ path: CORE, namespace: CORE }));
      build.onLoad({ filter: /.*/, namespace: CORE }, () => ({ contents: core.map((input) => `import ${JSON.stringify(`./${input}`)};`).join("\n"), resolveDir: FRONTEND }));
      build.onLoad({ filter: /\.tsx?$/ }, async ({ path: file }) => {
        const name = path.relative(FRONTEND, file).split(path.sep).join("/");
        if (!views.has(name)) return undefined;
        return { contents: `${await readFile(file, "utf8")}\nimport ${JSON.stringify(CORE)};`, loader: path.extname(file).slice(1) };
      });
    },
  };
}

async function build(outdir) {
  const options = {
    absWorkingDir: FRONTEND,
    entryPoints: [ENTRY],
    bundle: true,
    splitting: true, // views are fetched when they are first opened
    chunkNames: "[name]-[hash]",
    outdir: "out", // not written
    format: "esm",
    target: TARGET,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    metafile: true,
    write: false,
  };
  const { metafile: split } = await esbuild.build({ ...options, plugins: [cssAsText] });
  const { outputFiles, metafile } = await esbuild.build({ ...options, plugins: [cssAsText, inOneFile(split.outputs)] });
  const sizes = firstScreens(metafile.outputs);
  for (const [name, size] of sizes) if (size > BUDGET_BYTES) throw new Error(`The ${name} has ${size} bytes and the limit is ${BUDGET_BYTES}.`);
  const licences = await Promise.all(packagesIn(metafile.inputs).map(licenceOf));
  await mkdir(outdir, { recursive: true });
  for (const name of await readdir(outdir)) if (/^[\w.]+-[A-Z0-9]{8}\.js$/.test(name)) await rm(path.join(outdir, name)); // files of the previous build
  for (const { path: file, contents } of outputFiles) await writeFile(path.join(outdir, path.basename(file)), contents);
  await writeFile(path.join(outdir, "LICENSES.txt"), `The tab contains:\n\n${licences.join("\n---\n\n")}`);
  for (const [file, { bytes }] of Object.entries(metafile.outputs)) console.log(`${path.basename(file)}  ${bytes} bytes`);
  for (const [name, size] of sizes) console.log(`${name}: ${size} of ${BUDGET_BYTES} bytes`);
}

const { values } = parseArgs({
  options: { outdir: { type: "string", default: "../tb_bottleneck/plugin/static" } },
});
await build(path.resolve(FRONTEND, values.outdir));
