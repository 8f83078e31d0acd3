import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { catalogue } from "./catalogue.ts";

const page = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./",
  plugins: [svelte({ configFile: false }), catalogue()],
  worker: { format: "es" },
  build: {
    outDir: "../dist/studio",
    emptyOutDir: true,
    // Keep `light-dark()` in the CSS: the theme switch sets only `color-scheme`.
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    rolldownOptions: { input: [page("index.html"), page("laboratory.html")] },
  },
  // To develop the page, run `npx vite studio` together with `coterie up`.
  server: { proxy: { "/api": "http://127.0.0.1:7400" } },
});
