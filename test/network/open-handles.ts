/** Open network handles of this process: they must be equal before and after a test. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { PATIENCE_MS } from "../patience.ts";

const LOOK_EVERY_MS = 5;

/** The open handles other than sockets, once the handles of earlier tests have closed. */
export async function handlesAtRest(): Promise<string[]> {
  await settled(() => sockets().length === 0);
  expect(sockets()).toEqual([]);
  return busy();
}

/** Resolves once no kind has more open handles than in `before`. */
export async function expectNothingLeft(before: readonly string[]): Promise<void> {
  await settled(() => openedSince(before).length === 0);
  expect(openedSince(before)).toEqual([]);
}

const busy = (): string[] => process.getActiveResourcesInfo().filter((name) => /^(TCP|TLS|Timeout|Connect)/.test(name));

const sockets = (): string[] => busy().filter((name) => name !== "Timeout");

/** The open handles without an equal in `before`. A closed one does not make up for one of another kind. */
function openedSince(before: readonly string[]): string[] {
  const opened = busy();
  for (const name of before) {
    const at = opened.indexOf(name);
    if (at >= 0) opened.splice(at, 1);
  }
  return opened;
}

/** No timer of its own runs while it checks, unlike with other ways to wait. */
async function settled(enough: () => boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS && !enough(); waitedMs += LOOK_EVERY_MS) await sleep(LOOK_EVERY_MS);
}
