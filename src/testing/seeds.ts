/** Seeds: which ones a test tries, and how the one that failed is tried again. */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError, unexpected } from "../core/errors.ts";

const VARIABLE = "COTERIE_SEED";

/** The one seed to try, if somebody replays a failure. */
export function replayedSeed(): number | null {
  const text = process.env[VARIABLE];
  if (text === undefined || text === "") return null;
  const seed = Number(text);
  if (!Number.isSafeInteger(seed)) throw new UsageError("bad-option", unexpected(VARIABLE, "a whole number", text));
  return seed;
}

/**
 * The seeds 1 to `count`, or the one of `COTERIE_SEED` alone.
 *
 * @example
 * for (const seed of seeds(1_000)) await simulate({ members: 3, seed, faults: "random" }).run(test);
 */
export function seeds(count: number): number[] {
  const one = replayedSeed();
  return one === null ? Array.from({ length: count }, (_, i) => i + 1) : [one];
}

/** Says in the error which seed it came with, and how to see it again. */
export function withSeed(error: unknown, seed: number, file: string | null): unknown {
  if (!(error instanceof Error) || error.message.includes(VARIABLE)) return error;
  const where = file === null ? "" : ` ${file}`;
  const text = `${error.message}\n\nSeed ${seed}. Replay: ${VARIABLE}=${seed} npx vitest run${where}`;
  Object.defineProperty(error, "message", { value: text, configurable: true, writable: true });
  return error;
}

const OWN_FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** The file that called into this folder, as the stack tells; null if it does not. */
export function callersFile(): string | null {
  const lines = new Error("where").stack?.split("\n").slice(1) ?? [];
  for (const line of lines) {
    const [, place] = /(?:\(|at )((?:file:\/\/)?\/[^():]+):\d+:\d+\)?$/.exec(line) ?? [];
    if (place === undefined) continue;
    const path = place.startsWith("file:") ? fileURLToPath(place) : place;
    if (!path.startsWith(OWN_FOLDER) || path.endsWith(".test.ts")) return relative(process.cwd(), path);
  }
  return null;
}
