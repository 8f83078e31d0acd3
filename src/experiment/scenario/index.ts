/** Scenarios: runs of a protocol as data, with what should come of them. */
export type { Judged } from "./expectations.ts";
export { labelled } from "./labels.ts";
export { type ParsedScenario, parseScenario } from "./parse.ts";
export type { Path } from "./problem.ts";
export type { PropertyVerdict, Result } from "./result.ts";
export {
  type Cast,
  cast,
  type Progress,
  playScenario,
  type RunHooks,
  runScenario,
} from "./run.ts";
export { asVariant, jsonSchema, type Nodes, type Scenario, type ScenarioSource, scenarioSchema } from "./schema.ts";
