/** A snapshot that is saved at any moment of a run under faults, and what was acknowledged before it: all of that is in a cluster founded from it. */
import { random } from "../../src/core/random.ts";
import type { World } from "../../src/testing/index.ts";

/** A process may die while it saves: then nothing comes any more. */
const ATTEMPT_MS = 3_000;
const WITHIN = { timeoutMs: 60_000 };

/** What a run knows for certain at some moment. */
export interface Known {
  readonly acknowledged: ReadonlyMap<string, number>;
  readonly added: number;
}

export class SavedState {
  #known: Known | null = null;
  #snapshot = "";

  /** @param known is asked for before each attempt: what is acknowledged later may be missing. */
  constructor(
    private readonly world: World,
    private readonly known: () => Known,
  ) {}

  /** At a moment within that time, or as soon after it as it can be had. */
  async save(seed: number, withinMs: number): Promise<void> {
    const { world } = this;
    const chance = random(seed).stream("snapshot");
    await world.sleep(chance.between(0, withinMs));
    for (;;) {
      const known = this.known();
      const up = world.members.filter((id) => world.isUp(id));
      const id = up[chance.below(up.length || 1)];
      const saving = id === undefined ? null : world.member(id).cluster.snapshot({ timeoutMs: ATTEMPT_MS / 2 });
      const snapshot = await Promise.race([saving?.catch(() => null), world.sleep(ATTEMPT_MS, null)]);
      if (typeof snapshot !== "string") {
        await world.sleep(50);
        continue;
      }
      this.#snapshot = snapshot;
      this.#known = known;
      return;
    }
  }

  /** All members are lost, after a last token of theirs; a new cluster has what was known, and gives higher ones. */
  async restore(members: readonly number[]): Promise<void> {
    const { world } = this;
    const last = await world
      .member(members[0] as number)
      .mutex("last")
      .acquire(WITHIN);
    for (const id of world.members) {
      world.crash(id);
      world.wipe(id);
    }
    await world.restore(this.#snapshot, members);
    await Promise.all(members.map((id) => world.restart(id)));
    const member = world.member(members.at(-1) as number);
    const map = member.map<number>("numbers");
    const { acknowledged, added } = this.#known as Known;
    for (const [key, value] of acknowledged) {
      const found = await map.get(key, WITHIN);
      if (found === undefined || found < value)
        throw new Error(`${key} was ${value} for certain before the snapshot, and is ${found}`);
    }
    const total = await member.counter("all").get(WITHIN);
    if (total < added) throw new Error(`${added} was added for certain before the snapshot, and it is ${total}`);
    const { token } = await member.mutex("one").acquire(WITHIN); // Whoever held it is none of this cluster.
    if (token <= last.token) throw new Error(`token ${token} came after ${last.token}`);
  }
}
