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
    // `light-dark()` must survive as it is: the theme switch sets `color-scheme` alone.
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    rolldownOptions: { input: [page("index.html"), page("laboratory.html")] },
  },
  // For work on the page itself: `npx vite studio` beside a running `coterie up`.
  server: { proxy: { "/api": "http://127.0.0.1:7400" } },
});
