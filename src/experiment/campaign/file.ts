/**
 * Campaigns as data: named experiments, each with a range of seeds. An experiment is one of three things: a simulated
 * run or a random walk of the checker, specified by command-line options; a scenario file; or a soak, which is a
 * command.
 */
import { z } from "zod";
import { UsageError, unexpected } from "../../core/errors.ts";
import { suggestion } from "../../core/suggestion.ts";
import { type CheckRequest, isRandom, requestFrom } from "../check-request.ts";
import {
  type Experiment,
  type ExperimentOption,
  experimentOptions,
  MAX_SEED,
  optionsFor,
  requireOptionsFor,
} from "../experiment.ts";
import { parseScenario } from "../scenario/parse.ts";
import { firstProblem } from "../scenario/problem.ts";
import { type Staged, scenarioOf, staged } from "../simulate.ts";
import { wholeNumber } from "../written-values.ts";

/** The text of a campaign and its scenarios. It is plain data, so it can be sent to a worker. */
export interface CampaignSource {
  /** The path of the campaign, for error messages. */
  readonly file: string;
  readonly text: string;
  /** The text of each scenario file, keyed by the path given in the campaign. */
  readonly scenarios: Readonly<Record<string, string>>;
}

/** A validated campaign. */
export interface Campaign {
  readonly name: string;
  readonly experiments: readonly CampaignExperiment[];
}

export type CampaignExperiment = {
  readonly name: string;
  /** The first seed and the number of seeds. */
  readonly seeds: { readonly from: number; readonly count: number };
  /** The number of seeds per job. */
  readonly chunkSize: number;
} & Runs;

type Runs =
  | { readonly kind: "simulate"; readonly made: Staged }
  | { readonly kind: "walk"; readonly request: CheckRequest }
  | { readonly kind: "soak"; readonly soak: Soak };

/**
 * A command that runs once per seed, with `{seed}` replaced by the seed. A nonzero exit code or a timeout counts as a
 * failure.
 */
export interface Soak {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/**
 * One job: the index of an experiment in the campaign, and the index of a chunk in that experiment. Both start at 0.
 */
export interface Chunk {
  readonly experiment: number;
  readonly chunk: number;
}

const MAX_SEEDS = 100_000_000;
/** The maximum number of jobs. Each is a line in a file or a job in a queue. */
const MAX_CHUNKS = 1_000_000;
const DEFAULT_CHUNK = 500;
/** The default number of soaks per job. It is 1 because a soak may take minutes. */
const DEFAULT_SOAK_CHUNK = 1;
const MAX_SOAK_SECONDS = 86_400;

/** The seed that the checker uses for all walks. The campaign's seed is the run number. */
export const WALK_SEED = 1;

const A_NAME = "a name of 1 to 40 lower-case letters, digits and -";
const named = z.string(A_NAME).regex(/^[a-z0-9][a-z0-9-]{0,39}$/, A_NAME);
const whole = (min: number, max: number) => {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
};
const seeds = z.strictObject({ from: whole(0, MAX_SEED).default(1), count: whole(1, MAX_SEEDS) }, "{ from, count }");
const chunk = whole(1, 1_000_000);
const spelled = z.looseObject(
  { protocol: z.string("the name of a protocol") },
  "an object of options, such as protocol",
);
const argument = z.string("a string").min(1, "a string").max(4_096, "a string of at most 4096 characters");
const soak = z.strictObject(
  {
    command: z.array(argument, "a list of strings").min(1, "a program and its arguments").max(100, "at most 100 items"),
    env: z.record(z.string(), argument, "an object of strings").default({}),
    timeoutSeconds: z
      .number("seconds")
      .positive("seconds above 0")
      .max(MAX_SOAK_SECONDS, `at most ${MAX_SOAK_SECONDS} seconds`)
      .default(600),
  },
  "{ command, env, timeoutSeconds }",
);
const experiment = z.strictObject(
  {
    name: named,
    seeds: seeds.exactOptional(),
    chunk: chunk.exactOptional(),
    simulate: spelled.exactOptional(),
    walk: spelled.exactOptional(),
    scenario: argument.exactOptional(),
    soak: soak.exactOptional(),
  },
  "an object",
);
const schema = z.strictObject(
  {
    name: named,
    seeds: seeds.exactOptional(),
    chunk: chunk.exactOptional(),
    experiments: z.array(experiment, "a list").min(1, "at least one experiment").max(1_000, "at most 1000 experiments"),
  },
  "an object { name, seeds, experiments }",
);
type Written = z.infer<typeof schema>;
type WrittenExperiment = Written["experiments"][number];

const kinds = ["simulate", "walk", "scenario", "soak"] as const;

/** Returns the scenario files named in a campaign. @throws UsageError that names the file and the field */
export function scenarioFilesOf(text: string, file: string): readonly string[] {
  return writtenIn(text, file).experiments.flatMap(({ scenario }) => scenario ?? []);
}

/**
 * Reduces a campaign to one of its experiments, or to a single run of it.
 * @param chosen `name`, or `name:seed`
 * @throws UsageError if the campaign has no experiment with that name
 */
export function only(text: string, file: string, chosen: string): string {
  const [name = "", seed] = chosen.split(":", 2);
  const { experiments, ...rest } = writtenIn(text, file);
  const own = experiments.find((each) => each.name === name);
  const names = experiments.map((each) => each.name);
  if (own === undefined)
    throw new UsageError("bad-argument", unexpected("--only", `one of ${names.join(", ")}, or with a seed`, chosen));
  const one =
    seed === undefined ? {} : { seeds: { from: wholeNumber(0, MAX_SEED)(seed, "the seed of --only"), count: 1 } };
  return JSON.stringify({ ...rest, experiments: [{ ...own, ...one }] });
}

/**
 * Parses a campaign. @throws UsageError `bad-campaign` with the file, the field, the expected value and the actual
 * value
 */
export function parseCampaign(source: CampaignSource): Campaign {
  const { file } = source;
  const { name, chunk, seeds: common, experiments } = writtenIn(source.text, file);
  const twice = experiments.find(({ name: one }, at) => experiments.findIndex(({ name: other }) => other === one) < at);
  if (twice !== undefined) refuse(file, "experiments", "every name once", twice.name);
  const campaign: Campaign = {
    name,
    experiments: experiments.map((each, at) => {
      const place = `experiments[${at}]`;
      const own =
        each.seeds ?? common ?? refuse(file, `${place}.seeds`, "present, since the campaign has none", undefined);
      const most = MAX_SEED - own.count + 1;
      if (own.from > most)
        refuse(file, `${place}.seeds.from`, `at most ${most}, since each run uses the next seed`, own.from);
      const chunkSize = each.chunk ?? chunk ?? (each.soak === undefined ? DEFAULT_CHUNK : DEFAULT_SOAK_CHUNK);
      return { name: each.name, seeds: own, chunkSize, ...runsOf(each, place, source) };
    }),
  };
  const jobs = campaign.experiments.reduce((sum, each) => sum + chunkCount(each), 0);
  if (jobs > MAX_CHUNKS) refuse(file, "chunk", `large enough for at most ${MAX_CHUNKS} jobs`, chunk);
  return campaign;
}

/** Returns all jobs of the campaign, in order. */
export function chunksOf(campaign: Campaign): readonly Chunk[] {
  return campaign.experiments.flatMap((each, experiment) =>
    Array.from({ length: chunkCount(each) }, (_, chunk) => ({ experiment, chunk })),
  );
}

export function seedsOf({ experiments }: Campaign, { experiment, chunk }: Chunk): CampaignExperiment["seeds"] {
  const { seeds, chunkSize } = experiments[experiment] as CampaignExperiment;
  const before = chunk * chunkSize;
  return { from: seeds.from + before, count: Math.min(chunkSize, seeds.count - before) };
}

const chunkCount = ({ chunkSize, seeds: { count } }: CampaignExperiment): number => Math.ceil(count / chunkSize);

function writtenIn(text: string, file: string): Written {
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch (error) {
    throw new UsageError("bad-campaign", `${file}: expected JSON: ${(error as Error).message}`);
  }
  const checked = schema.safeParse(input);
  if (checked.success) return checked.data;
  const { sentence } = firstProblem(schema, checked.error, input);
  throw new UsageError("bad-campaign", `${file}: ${sentence.replace("the scenario", "the campaign")}`);
}

function runsOf(each: WrittenExperiment, place: string, { file, scenarios }: CampaignSource): Runs {
  const [kind, other] = kinds.filter((name) => each[name] !== undefined);
  if (kind === undefined || other !== undefined)
    return refuse(file, place, `one of ${kinds.join(", ")}`, kind === undefined ? "none" : `${kind} and ${other}`);
  const { simulate, walk, scenario, soak: command } = each;
  if (command !== undefined) {
    const { timeoutSeconds, ...rest } = command;
    return { kind: "soak", soak: { ...rest, timeoutMs: timeoutSeconds * 1_000 } };
  }
  if (scenario !== undefined)
    return { kind: "simulate", made: staged(parseScenario(scenarios[scenario] ?? "", scenario)) };
  try {
    if (simulate !== undefined) {
      const experiment = experimentOf(simulate, "simulate", ["seed"]);
      return { kind: "simulate", made: staged({ scenario: scenarioOf(experiment), place: () => file }) };
    }
    const experiment = experimentOf(walk ?? {}, "explore", ["seed", "runs", "workers", "maxMemory"]);
    const request = requestFrom({ strategy: "random", ...experiment });
    if (isRandom(request.strategy)) return { kind: "walk", request };
    return refuse(file, `${place}.walk.strategy`, "random, pct or swarm", request.strategy);
  } catch (error) {
    if (!(error instanceof UsageError) || error.code === "bad-campaign") throw error;
    throw new UsageError("bad-campaign", `${file}: ${place}.${kind}: ${error.message}`);
  }
}

/** Parses the options of an experiment. @param ofCampaigns options that are rejected because the campaign sets them */
function experimentOf(
  given: Readonly<Record<string, unknown>>,
  use: keyof typeof optionsFor,
  ofCampaigns: readonly string[],
): Experiment {
  const { protocol, ...rest } = given;
  const known: Readonly<Record<string, ExperimentOption<unknown>>> = experimentOptions;
  const read = Object.entries(rest).map(([name, value]): [string, unknown] => {
    const word = Object.hasOwn(known, name) ? known[name] : undefined;
    if (word === undefined)
      throw new UsageError(
        "bad-campaign-word",
        `${unexpected(name, "absent", value)}${suggestion(name, Object.keys(optionsFor[use]))}`,
      );
    if (ofCampaigns.includes(name))
      throw new UsageError("bad-campaign-word", unexpected(name, "absent, since the campaign sets it", value));
    return [name, word.read(asText(word, name, value), name)];
  });
  const experiment = { protocol, ...Object.fromEntries(read) } as Experiment;
  requireOptionsFor(use, experiment);
  return experiment;
}

/** Converts a JSON value to the text that would be given to the command-line option. */
function asText({ value: form }: ExperimentOption<unknown>, name: string, value: unknown): string {
  if (form === null || value === true) {
    if (value === true && (form === null || form.startsWith("["))) return "any";
    throw new UsageError("bad-campaign-word", unexpected(name, form === null ? "true, or absent" : form, value));
  }
  if (typeof value === "string" || typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.join(",");
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  throw new UsageError("bad-campaign-word", unexpected(name, "a value of the command-line option", value));
}

function refuse(file: string, field: string, expected: string, got: unknown): never {
  throw new UsageError("bad-campaign", `${file}: ${unexpected(field, expected, got)}`);
}
