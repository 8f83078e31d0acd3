/** Scenarios: runs of a protocol as data, with their expected results. */

export { labelled } from "./names.ts";
export { type ParsedScenario, parseScenario } from "./parse.ts";
export type { Path } from "./problem.ts";
export type { Judged, PropertyVerdict, Result } from "./result.ts";
export {
  type Cast,
  cast,
  type Progress,
  playScenario,
  type RunHooks,
  runScenario,
} from "./run.ts";
export { asVariant, jsonSchema, type Nodes, type Scenario, type ScenarioSource, scenarioSchema } from "./schema.ts";
