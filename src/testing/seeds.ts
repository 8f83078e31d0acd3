/** Seeds: which ones a test tries, and how the one that failed is tried again. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError, unexpected } from "../core/errors.ts";

const VARIABLE = "COTERIE_SEED";
const NUMBER_VARIABLE = "COTERIE_SEEDS";

/** The one seed to try, if somebody replays a failure. */
export const replayedSeed = (): number | null => numberIn(VARIABLE);

/**
 * The seeds 1 to `count`, or to `COTERIE_SEEDS`; or the one of `COTERIE_SEED` alone.
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

/** So many lines of its log a replay tells at most: the last ones. */
const MAX_LINES = 400;

/** Says in the error which seed it came with, and how to see it again; where that is done, what happened in the world. */
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

const OWN_FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** The test, or else the file, that called into this folder, as the stack of `made` tells; null if it does not. */
function callersFile(made: Error): string | null {
  const lines = made.stack?.split("\n").slice(1) ?? [];
  const callers = lines.flatMap((line) => {
    const [, place] = /(?:\(|at )((?:file:\/\/)?\/[^():]+):\d+:\d+\)?$/.exec(line) ?? [];
    if (place === undefined) return [];
    const path = place.startsWith("file:") ? fileURLToPath(place) : place;
    return path.startsWith(OWN_FOLDER) && !TEST.test(path) ? [] : [path];
  });
  const path = callers.find((caller) => TEST.test(caller)) ?? callers[0];
  return path === undefined ? null : relative(process.cwd(), path);
}

const TEST = /\.(test|spec)\.\w+$/;
