import { UsageError } from "../../../../src/core/errors.ts";

/** The texts of the scenario files. This module is loaded when it is first used. */
const files = import.meta.glob<string>("../../../../scenarios/*.yaml", {
  query: "?raw",
  import: "default",
  eager: true,
});

export function scenarioText(name: string): string {
  const text = files[`../../../../scenarios/${name}.yaml`];
  if (text === undefined)
    throw new UsageError("bad-argument", `No scenario is called “${name}”. The gallery lists the scenarios.`);
  return text;
}
