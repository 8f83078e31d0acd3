/** What keeps this process busy with the network: to be equal before and after what a test opened. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 5;

/** What is open besides sockets, once those of earlier tests have closed. */
export async function handlesAtRest(): Promise<string[]> {
  await settled((handles) => handles.every((name) => name === "Timeout"));
  const handles = busy();
  expect(handles.filter((name) => name !== "Timeout")).toEqual([]);
  return handles;
}

/** Resolves once no more than `before` is open. */
export async function expectNothingLeft(before: readonly string[]): Promise<void> {
  await settled((handles) => handles.length <= before.length);
  expect(busy().filter((name, i) => name !== before[i])).toEqual([]);
}

const busy = (): string[] =>
  process
    .getActiveResourcesInfo()
    .filter((name) => /^(TCP|TLS|Timeout|Connect)/.test(name))
    .sort();

/** No timer of its own runs while it looks, unlike with those who wait in other ways. */
async function settled(enough: (handles: readonly string[]) => boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS && !enough(busy()); waitedMs += LOOK_EVERY_MS)
    await sleep(LOOK_EVERY_MS);
}
