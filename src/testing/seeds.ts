/** The seeds that a test tries, and instructions for replaying the one that failed. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError, unexpected } from "../core/errors.ts";
import { packageFile } from "../runtime/package-files.ts";

const VARIABLE = "COTERIE_SEED";
const NUMBER_VARIABLE = "COTERIE_SEEDS";

/** Returns the only seed to try, if `COTERIE_SEED` is set to replay a failure. */
export const replayedSeed = (): number | null => numberIn(VARIABLE);

/**
 * Returns the seeds from 1 to `count`, or to `COTERIE_SEEDS` if that is set. If `COTERIE_SEED` is set, returns only
 * that seed.
 *
 * @example
 * for (const seed of seeds(1_000)) await simulate({ members: 3, seed, faults: "random" }).run(test);
 */
export function seeds(count: number): number[] {
  const one = replayedSeed();
  if (one !== null) return [one];
  return Array.from({ length: numberIn(NUMBER_VARIABLE) ?? count }, (_, i) => i + 1);
}

function numberIn(variable: string): number | null {
  const text = process.env[variable];
  if (text === undefined || text === "") return null;
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new UsageError("bad-option", unexpected(variable, "a whole number", text));
  return number;
}

/** The maximum number of log lines that a replay prints. It prints the most recent ones. */
const MAX_LINES = 400;

/** Adds the seed to the error, and the command that replays it. In a replay, also adds the world's log. */
export function withSeed(
  error: unknown,
  { seed, made, log }: { seed: number; made: Error; log: readonly string[] },
): unknown {
  if (!(error instanceof Error) || error.message.includes(VARIABLE)) return error;
  const file = callersFile(made);
  const where = file === null ? "" : ` ${file}`;
  const story = replayedSeed() === null ? [] : ["", ...log.slice(-MAX_LINES)];
  const text = [error.message, "", `Seed ${seed}. Replay: ${VARIABLE}=${seed} npx vitest run${where}`, ...story].join(
    "\n",
  );
  Object.defineProperty(error, "message", { value: text, configurable: true, writable: true });
  return error;
}

/** This folder, or the package that contains it. */
const OWN_FOLDERS = [fileURLToPath(new URL(".", import.meta.url)), packageFile("dist")];

/**
 * Uses the stack of `made` to find the test that called into this folder or, failing that, the calling file. Null if
 * unknown.
 */
function callersFile(made: Error): string | null {
  const lines = made.stack?.split("\n").slice(1) ?? [];
  const callers = lines.flatMap((line) => {
    const [, place] = /(?:\(|at )((?:file:\/\/)?\/[^():]+):\d+:\d+\)?$/.exec(line) ?? [];
    if (place === undefined) return [];
    const path = place.startsWith("file:") ? fileURLToPath(place) : place;
    return OWN_FOLDERS.some((folder) => path.startsWith(folder)) && !TEST.test(path) ? [] : [path];
  });
  const path = callers.find((caller) => TEST.test(caller)) ?? callers[0];
  return path === undefined ? null : relative(process.cwd(), path);
}

const TEST = /\.(test|spec)\.\w+$/;
