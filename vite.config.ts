/**
 * Bundles the package: its entry points and scripts stay where `package.json` names them, and share chunks. A command
 * loads a few files instead of hundreds, so it starts in half the time.
 */
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const { exports, bin } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly bin: Readonly<Record<string, string>>;
};
/** Scripts that a command starts in a thread or a process of its own, and the platform, which tests slow down. */
const scripts = [
  "dist/cli/experiments/worker.js",
  "dist/cli/supervisor/supervisor-process.js",
  "dist/runtime/platform/real.js",
];
const built = [
  ...Object.values(exports).flatMap((target) => (typeof target === "string" ? [] : [target.default])),
  ...Object.values(bin),
  ...scripts,
].map((file) => file.replace(/^(?:\.\/)?dist\//, "").replace(/\.js$/, ""));

export default defineConfig({
  build: {
    ssr: true,
    target: "node20",
    outDir: "dist",
    emptyOutDir: false,
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(built.map((name) => [name, `src/${name}.ts`])),
      output: { entryFileNames: "[name].js", chunkFileNames: "chunks/[name].js" },
    },
  },
});
