/**
 * Collects and checks the observations of members about their grants and leaderships, while the members continue to
 * write.
 */
import { closeSync, openSync, readSync } from "node:fs";
import type { Sighting } from "./joined-process.ts";

/**
 * One grant or leadership. The run was certain of it from its first sighting to its last, or lost it before the first.
 */
interface Seen {
  readonly of: Sighting["of"];
  readonly run: string;
  readonly token: number;
  readonly from: number;
  /** Null if it was lost before the first sighting. */
  to: number | null;
  isLost: boolean;
}

export class Sightings {
  readonly #file: string;
  readonly #seen = new Map<string, Seen>();
  readonly #revived: string[] = [];
  #read = 0;
  #rest = "";

  constructor(file: string) {
    this.#file = file;
    closeSync(openSync(file, "a"));
  }

  /** Reads new lines. */
  refresh(): this {
    const file = openSync(this.#file, "r");
    const chunk = Buffer.alloc(65_536);
    for (let length = 1; length > 0; this.#read += length) {
      length = readSync(file, chunk, 0, chunk.length, this.#read);
      const lines = `${this.#rest}${chunk.toString("latin1", 0, length)}`.split("\n");
      this.#rest = lines.pop() as string;
      for (const line of lines) this.#note(JSON.parse(line) as Sighting);
    }
    closeSync(file);
    return this;
  }

  #note({ of, run, tenure, token, at, certain }: Sighting): void {
    const key = `${run} ${tenure}`;
    const known = this.#seen.get(key);
    const seen = known ?? { of, run, token, from: at, to: null, isLost: false };
    if (known === undefined) this.#seen.set(key, seen);
    if (!certain) seen.isLost = true;
    else if (seen.isLost) this.#revived.push(`${of}: ${run} became certain of token ${token} again after losing it`);
    else seen.to = at;
  }

  count(of: Sighting["of"]): number {
    return [...this.#seen.values()].filter((each) => each.of === of).length;
  }

  /** Returns the runs that have been certain of a tenure after that time. */
  runsSince(of: Sighting["of"], at: number): ReadonlySet<string> {
    const later = [...this.#seen.values()].filter((each) => each.of === of && (each.to ?? 0) > at);
    return new Set(later.map(({ run }) => run));
  }

  /** Returns the run with the latest tenure. */
  latestRun(of: Sighting["of"]): string | null {
    let latest: Seen | null = null;
    for (const each of this.#seen.values())
      if (each.of === of && (latest === null || each.token > latest.token)) latest = each;
    return latest?.run ?? null;
  }

  /**
   * Returns violations as sentences. Only one run may be certain at a time, and tokens must grow without repetition.
   */
  disorder(): string[] {
    return [...this.#revived, ...this.#disorderOf("lock"), ...this.#disorderOf("election")];
  }

  #disorderOf(of: Sighting["of"]): string[] {
    const wrong: string[] = [];
    const owners = new Map<number, string>();
    const all = [...this.#seen.values()].filter((each) => each.of === of).sort((a, b) => a.from - b.from);
    for (const { run, token } of all) {
      const other = owners.get(token);
      if (other !== undefined) wrong.push(`${of}: token ${token} was given to ${other} and to ${run}`);
      owners.set(token, run);
    }
    let before: Certain | null = null;
    let longest: Certain | null = null; // The earlier tenure whose certainty ended last.
    for (const next of all) {
      if (!wasCertain(next)) continue;
      if (before !== null && next.token <= before.token)
        wrong.push(`${of}: token ${next.token} of ${next.run} came after ${before.token} of ${before.run}`);
      if (longest !== null && next.from < longest.to) wrong.push(overlap(longest, next));
      before = next;
      if (longest === null || next.to > longest.to) longest = next;
    }
    return wrong;
  }
}

type Certain = Seen & { readonly to: number };

const wasCertain = (seen: Seen): seen is Certain => seen.to !== null;

function overlap(a: Certain, b: Certain): string {
  const ms = (Math.min(a.to, b.to) - b.from).toFixed(1);
  return `${b.of}: ${a.run} with token ${a.token} and ${b.run} with token ${b.token} were certain together for ${ms} ms or more`;
}
