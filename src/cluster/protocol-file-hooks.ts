/**
 * Module hooks for protocols in users' own files. `import "coterie/core"` in such a file resolves to this package, even
 * if the package is not installed next to the file, so that the file and the command line share classes. TypeScript
 * files are ES modules, no matter what the nearest package.json says.
 */
import type { InitializeHook, ResolveHook } from "node:module";

let own = "";

/** @param url the URL of a module in this package */
export const initialize: InitializeHook<string> = (url) => {
  own = url;
};

export const resolve: ResolveHook = async (specifier, context, next) => {
  const isOwn = /^coterie(\/|$)/.test(specifier);
  const found = await next(specifier, isOwn ? { ...context, parentURL: own } : context);
  const isScript = /\.m?ts$/.test(found.url) && !("typescript" in process.features && process.features.typescript);
  return isScript ? { ...found, format: "module" } : found;
};
