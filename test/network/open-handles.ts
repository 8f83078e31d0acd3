/** What keeps this process busy with the network: to be equal before and after what a test opened. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { PATIENCE_MS } from "../patience.ts";

const LOOK_EVERY_MS = 5;

/** What is open besides sockets, once those of earlier tests have closed. */
export async function handlesAtRest(): Promise<string[]> {
  await settled(() => sockets().length === 0);
  expect(sockets()).toEqual([]);
  return busy();
}

/** Resolves once nothing is open that is not in `before`, by number of each kind. */
export async function expectNothingLeft(before: readonly string[]): Promise<void> {
  await settled(() => openedSince(before).length === 0);
  expect(openedSince(before)).toEqual([]);
}

const busy = (): string[] => process.getActiveResourcesInfo().filter((name) => /^(TCP|TLS|Timeout|Connect)/.test(name));

const sockets = (): string[] => busy().filter((name) => name !== "Timeout");

/** What is open and has no equal in `before`: one that closed makes no room for one of another kind. */
function openedSince(before: readonly string[]): string[] {
  const opened = busy();
  for (const name of before) {
    const at = opened.indexOf(name);
    if (at >= 0) opened.splice(at, 1);
  }
  return opened;
}

/** No timer of its own runs while it looks, unlike with those who wait in other ways. */
async function settled(enough: () => boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs < PATIENCE_MS && !enough(); waitedMs += LOOK_EVERY_MS) await sleep(LOOK_EVERY_MS);
}
