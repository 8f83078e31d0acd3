/**
 * Checks a fair queue of one replica with random operations on locks. Some operations are duplicates, late, or from
 * ended sessions.
 */

import type { NodeId } from "../../../src/core/protocol.ts";
import { type Random, random } from "../../../src/core/random.ts";
import type { ServiceEvent } from "../../../src/protocols/service/coordination-service/operations.ts";
import { valuesOf } from "../../../src/protocols/service/keyspace/table.ts";
import { type OneReplica, oneReplica, type StateMachine } from "./one-replica.ts";

const NAMES = ["a", "b"];
const CAPACITY = 3;
const MEMBERS = [0, 1, 2, 3];

type Granted = Extract<ServiceEvent, { type: "granted" }>;
type Released = Extract<ServiceEvent, { type: "released" }>;
type Asked = { name: string; session: number; wait: number; mode: "exclusive" | "shared" };

class GrantRun {
  readonly #draw: Random;
  readonly #replica: OneReplica;
  readonly #sessions: Map<NodeId, number>;
  /** Requests that were not released, in order of their first attempt. */
  #asked: Asked[] = [];
  readonly #grants: Granted[] = [];
  readonly #released = new Set<number>();
  #waits = 0;

  constructor(seed: number, machine?: StateMachine) {
    this.#draw = random(seed);
    this.#replica = oneReplica({ maxWaiting: 1_000 }, {}, machine);
    this.#sessions = new Map(MEMBERS.map((member) => [member, this.#replica.open(member)]));
  }

  /** @returns the violation, or null */
  step(): string | null {
    const draw = this.#draw;
    const member = draw.pick(MEMBERS);
    const session = this.#sessions.get(member) ?? 0;
    const mayRelease = this.#take(member, session, draw.pick(NAMES));
    const wrong = this.#replica.events().map((event) => {
      if (event.type === "released") return this.#noteRelease(event, mayRelease);
      return event.type === "granted" ? this.#noteGrant(event) : null;
    });
    const isTooMuch = valuesOf(this.#replica.data.locks).some(
      ({ capacity, holders }) => holders.reduce((sum, { permits }) => sum + permits, 0) > capacity,
    );
    return wrong.find((each) => each !== null) ?? (isTooMuch ? "more permits are held than exist" : this.#leftOver());
  }

  /** @returns the grants that the member may release */
  #take(member: NodeId, session: number, name: string): Granted[] {
    const [draw, replica] = [this.#draw, this.#replica];
    const held = this.#grants.filter((grant) => grant.session === session && !this.#released.has(grant.token));
    const own = this.#asked.filter((each) => each.session === session && each.name === name);
    const choice = draw.below(24);
    if (choice < 10) {
      const chosen = own.length > 0 && draw.below(3) === 0 ? draw.pick(own) : this.#newWait(session, name);
      replica.apply(member, { type: "acquire", permits: 1, capacity: CAPACITY, note: "", ...withoutSession(chosen) });
      return [];
    }
    if (choice < 18) {
      // Sometimes use an old one.
      const token = this.#grants.length === 0 ? 0 : draw.pick(this.#grants.slice(-8)).token;
      replica.apply(member, { type: "release", name, token });
      return held.filter((grant) => grant.token === token);
    }
    if (choice < 23) {
      if (own.length === 0) return [];
      const { wait } = draw.pick(own);
      replica.apply(member, { type: "withdraw", name, wait });
      this.#asked = this.#asked.filter((each) => each.session !== session || each.wait !== wait);
      return held.filter((grant) => grant.wait === wait);
    }
    replica.end(member);
    this.#sessions.set(member, replica.open(member));
    this.#asked = this.#asked.filter((each) => each.session !== session);
    return held;
  }

  #newWait(session: number, name: string): Asked {
    this.#waits += 1;
    const mode = this.#draw.pick(["exclusive", "shared"] as const);
    const asked = { name, session, wait: this.#waits, mode };
    this.#asked.push(asked);
    return asked;
  }

  #noteRelease({ token }: Released, mayRelease: readonly Granted[]): string | null {
    const grant = mayRelease.find((each) => each.token === token);
    if (grant === undefined) return "a grant was released although no session released it";
    this.#released.add(token);
    this.#asked = this.#asked.filter((each) => each.session !== grant.session || each.wait !== grant.wait);
    return null;
  }

  #noteGrant(grant: Granted): string | null {
    const [grants, released, asked] = [this.#grants, this.#released, this.#asked];
    if (grants.some(({ token }) => token === grant.token)) return null; // The grant was repeated.
    if (grant.token <= (grants.at(-1)?.token ?? 0)) return "tokens do not grow";
    const standing = grants.filter(({ token }) => !released.has(token));
    const isGranted = ({ session, wait }: { session: number; wait: number }) =>
      standing.some((other) => other.session === session && other.wait === wait);
    if (isGranted(grant)) return "granted twice";
    const place = asked.findIndex((each) => each.session === grant.session && each.wait === grant.wait);
    const isPassed = asked.slice(0, Math.max(0, place)).some((each) => each.name === grant.name && !isGranted(each));
    grants.push(grant);
    return isPassed ? "a waiter is overtaken" : null;
  }

  #leftOver(): string | null {
    const open = [...this.#sessions.values()];
    const isLeft = valuesOf(this.#replica.data.locks).some(({ holders, waiters }) =>
      [...holders, ...waiters].some(({ session }) => !open.includes(session)),
    );
    return isLeft ? "a session that has ended still holds or waits" : null;
  }
}

const withoutSession = ({ session: _session, ...rest }: Asked): Omit<Asked, "session"> => rest;

/** @returns the violation, or null */
export function grantRun(seed: number, steps: number, machine?: StateMachine): string | null {
  const run = new GrantRun(seed, machine);
  for (let step = 0; step < steps; step++) {
    const wrong = run.step();
    if (wrong !== null) return wrong;
  }
  return null;
}
