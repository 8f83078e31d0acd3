/** Takes a snapshot during a run with faults. A cluster founded from it contains the state at that moment. */
import { buffer } from "node:stream/consumers";
import { random } from "../../../src/core/random.ts";
import type { Member } from "../../../src/index.ts";
import type { World } from "../../../src/testing/index.ts";
import type { Histories } from "./histories.ts";
import { counters, singles, together } from "./participant.ts";

/** The timeout for an attempt, because a call never settles if its process dies. */
const ATTEMPT_MS = 3_000;
const WITHIN = { timeoutMs: 10_000 };

export class SavedState {
  readonly #world: World;
  readonly #histories: Histories;
  #snapshot: Uint8Array = new Uint8Array(0);
  #between = { call: 0, return: 0 };

  constructor(world: World, histories: Histories) {
    this.#world = world;
    this.#histories = histories;
  }

  /** Saves at a random moment within that time, or as soon as possible after it. */
  async save(seed: number, withinMs: number): Promise<void> {
    const world = this.#world;
    const chance = random(seed).stream("snapshot");
    await world.sleep(chance.between(0, withinMs));
    for (;;) {
      const up = world.members.filter((id) => world.isUp(id));
      const id = up[chance.below(up.length || 1)];
      const call = world.now();
      const saving =
        id === undefined
          ? null
          : world
              .member(id)
              .cluster.snapshot({ timeoutMs: ATTEMPT_MS / 2 })
              .then(buffer);
      const snapshot = await Promise.race([saving?.catch(() => null), world.sleep(ATTEMPT_MS, null)]);
      if (snapshot === null || snapshot === undefined) {
        await world.sleep(50);
        continue;
      }
      this.#snapshot = snapshot;
      this.#between = { call, return: world.now() };
      return;
    }
  }

  /**
   * Acquires one more lock, then loses all members. The new cluster has the saved contents and assigns higher tokens.
   */
  async restore(members: readonly number[]): Promise<void> {
    const world = this.#world;
    const last = await world
      .member(members[0] as number)
      .mutex("last")
      .acquire(WITHIN);
    for (const id of world.clients) world.kill(id);
    for (const id of world.members) {
      world.crash(id);
      world.wipe(id);
    }
    await world.restore(this.#snapshot, members);
    await Promise.all(members.map((id) => world.restart(id)));
    const member = world.member(members.at(-1) as number);
    await readEverything(member, (asked, output) => this.#histories.noteRead(asked, output, this.#between));
    const { token } = await member.mutex("one").acquire(WITHIN); // The previous holder is not part of this cluster.
    if (token <= last.token) throw new Error(`token ${token} came after ${last.token}`);
  }
}

type Read = (asked: Parameters<Histories["noteRead"]>[0], output: Parameters<Histories["noteRead"]>[1]) => void;

async function readEverything(member: Member, read: Read): Promise<void> {
  const { entries } = await member.map<string>("state").range(WITHIN);
  const held = (key: string): string | null => entries.find((entry) => entry.key === key)?.value ?? null;
  for (const key of singles) read({ kind: "map", f: "get", key, input: null }, held(key));
  read({ kind: "store", f: "readAll", input: together }, together.map(held));
  for (const key of counters)
    read({ kind: "counter", f: "read", key, input: null }, await member.counter(key).get(WITHIN));
}
