/** The seeds that a test tries, and how to replay the one that failed. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError, unexpected } from "../core/errors.ts";

const VARIABLE = "COTERIE_SEED";
const NUMBER_VARIABLE = "COTERIE_SEEDS";

/** The only seed to try, if `COTERIE_SEED` replays a failure. */
export const replayedSeed = (): number | null => numberIn(VARIABLE);

/**
 * The seeds 1 to `count`, or to `COTERIE_SEEDS`; or only the seed in `COTERIE_SEED`.
 *
 * @example for (const seed of seeds(1_000)) await simulate({ members: 3, seed, faults: "random" }).run(test);
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

/** A replay prints at most this many lines of its log: the last ones. */
const MAX_LINES = 400;

/** Adds to the error its seed and the command that replays it; in a replay, also the world's log. */
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

/** The test, or otherwise the file, that called into this folder, according to the stack of `made`; null if unknown. */
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
