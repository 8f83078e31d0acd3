/** How `coterie lock` and `coterie elect` get at locks and elections: as a member themselves, or through one. */
import type { Election, Mutex } from "../cluster/services/api.ts";
import { say } from "./say.ts";

/** Who waits longer than this is told why, if it is for want of a majority. */
const SAY_AFTER_MS = 3_000;

export interface Access {
  mutex(name: string): Pick<Mutex, "name" | "acquire">;
  election(name: string): Pick<Election, "lead">;
  /** Says after a while what is missing, if something is. Returns what ends that. */
  explainWaiting(what: string): () => void;
  leave(): Promise<void>;
}

interface Majority {
  readonly hasQuorum: boolean;
  readonly reachable: number;
  readonly peers: readonly unknown[];
}

/** @param findMissing what a majority lacks; null: nothing, or nobody knows. */
export function explainWaiting(what: string, findMissing: () => Promise<string | null> | string | null): () => void {
  let isOver = false;
  const explain = async (): Promise<void> => {
    const missing = await findMissing();
    if (isOver || missing === null) return;
    say(`waiting for ${what}: it takes a majority of the members, and ${missing}`);
  };
  const timer = setTimeout(() => void explain(), SAY_AFTER_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** @param majority how things stand; null: nobody knows. */
export const missingOf = (majority: Majority | null): string | null =>
  majority === null || majority.hasQuorum
    ? null
    : `${majority.reachable} of ${majority.peers.length + 1} can be heard of`;
