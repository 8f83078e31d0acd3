/** Compares this process's open network handles before and after a test. They must be the same. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { PATIENCE_MS } from "../patience.ts";

const LOOK_EVERY_MS = 5;

/** Resolves with the open handles other than sockets, once the handles of earlier tests have been closed. */
export async function handlesAtRest(): Promise<string[]> {
  await settled(() => sockets().length === 0);
  expect(sockets()).toEqual([]);
  return busy();
}

/** Resolves when there are not more open handles of any kind than in `before`. */
export async function expectNothingLeft(before: readonly string[]): Promise<void> {
  await settled(() => openedSince(before).length === 0);
  expect(openedSince(before)).toEqual([]);
}

const busy = (): string[] => process.getActiveResourcesInfo().filter((name) => /^(TCP|TLS|Timeout|Connect)/.test(name));

const sockets = (): string[] => busy().filter((name) => name !== "Timeout");

/**
 * Returns the open handles that are not in `before`. A closed handle does not make up for a new one of a different
 * kind.
 */
function openedSince(before: readonly string[]): string[] {
  const opened = busy();
  for (const name of before) {
    const at = opened.indexOf(name);
    if (at >= 0) opened.splice(at, 1);
  }
  return opened;
}

/** Polls with sleeps, so that no timer from the wait itself is open during a check. */
async function settled(enough: () => boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS && !enough(); waitedMs += LOOK_EVERY_MS) await sleep(LOOK_EVERY_MS);
}
