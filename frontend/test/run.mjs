// Compiles every *.test.ts(x) below this folder with esbuild and runs them with node's own test runner.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile()).map((file) => path.join(file.parentPath ?? file.path, file.name));
const testsIn = (folder) => filesIn(folder).filter((file) => /\.test\.tsx?$/.test(file));
const outdir = mkdtempSync(path.join(os.tmpdir(), "tab-tests-"));
try {
  await esbuild.build({
    entryPoints: testsIn(HERE),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    sourcemap: "inline",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "text" },
    outExtension: { ".js": ".mjs" },
    outdir,
    // For tests that read the sources: they run in another folder.
    define: { FRONTEND: JSON.stringify(path.dirname(HERE)) },
    logLevel: "warning",
  });
  const files = filesIn(outdir);
  process.exitCode = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" }).status ?? 1;
} finally {
  rmSync(outdir, { recursive: true });
}
