/** Generates the contents of the gallery at build time, so that the page shows them before it loads an algorithm. */
import { readdirSync, readFileSync } from "node:fs";
import type { Plugin } from "vite";
import { parseScenario } from "../src/experiment/scenario/parse.ts";
import { protocolNamed, protocolNames } from "../src/protocols/index.ts";
import type { Catalogue, Exhibit } from "./src/laboratory/catalogue.ts";

const MODULE = "virtual:catalogue";
const NODES = 5;
const folder = new URL("../scenarios/", import.meta.url);

/** Returns a Vite plugin that provides the module `virtual:catalogue`. */
export function catalogue(): Plugin {
  return {
    name: "catalogue",
    resolveId: (id) => (id === MODULE ? `\0${MODULE}` : null),
    load: (id) => (id === `\0${MODULE}` ? `export default ${JSON.stringify(made())};` : null),
  };
}

function made(): Catalogue {
  const scenarios = readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => {
      const { scenario } = parseScenario(readFileSync(new URL(file, folder), "utf8"), file);
      const { name: title, protocol, variant } = scenario;
      return { protocol, shown: { file: file.replace(/\.yaml$/, ""), title, ...(variant && { variant }) } };
    });
  return protocolNames.map((name): Exhibit => {
    const { summary, family, model, presentation } = protocolNamed(name);
    const { properties, costs } = model();
    const isSafety = (when: string): boolean => when === "always" || when === "quiescent";
    const ordered = properties.toSorted((a, b) => Number(isSafety(b.when)) - Number(isSafety(a.when)));
    return {
      name,
      summary,
      family: family.name,
      topology: presentation.topology,
      guarantees: ordered.map(({ claim }) => claim),
      costs: costs.map(({ when, messages }) => ({ when, count: messages(NODES) })).filter(({ count }) => count >= 0),
      scenarios: scenarios.flatMap(({ protocol, shown }) => (protocol === name ? [shown] : [])),
    };
  });
}
