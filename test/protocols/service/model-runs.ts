/**
 * Random operations on one replica of the service, compared with a sequential model: leased keys, transactions, locks,
 * semaphores, queues and barriers. Sessions end, and some operations are sent twice.
 */

import type { NodeId } from "../../../src/core/protocol.ts";
import { type Random, random } from "../../../src/core/random.ts";
import type { Operation, Result, Step } from "../../../src/protocols/service/coordination-service/operations.ts";
import { sessionOf } from "../../../src/protocols/service/coordination-service/sessions.ts";
import { placeOf } from "../../../src/protocols/service/keyspace/layout.ts";
import { sessionOfLease } from "../../../src/protocols/service/keyspace/store.ts";
import { entriesOf, keysOf, type Table, valuesOf } from "../../../src/protocols/service/keyspace/table.ts";
import { type OneReplica, oneReplica, type StateMachine } from "./one-replica.ts";

const MEMBERS = [0, 1, 2];
const NAMES = ["a", "b"];
const KEYS = ["x", "y", "z"];
const CAPACITY = 4;
const PARTIES = 3;

interface Place {
  session: number;
  wait: number;
}
type Holding = Place & { permits: number };
type Taking = Place & { value: string; token: number };
interface Queue {
  items: string[];
  taken: Taking[];
  takers: Place[];
}

const isOf =
  (session: number) =>
  (place: Place): boolean =>
    place.session === session;
const isAt =
  (session: number, wait: number) =>
  (place: Place): boolean =>
    place.session === session && place.wait === wait;

/** The state of the service according to a sequential model. Values are unique, so a value identifies an item. */
class Model {
  readonly keys = new Map<string, { value: string; session: number | null }>();
  readonly locks = new Map<string, { holders: (Holding & { token: number })[]; waiters: Holding[] }>();
  readonly queues = new Map<string, Queue>();
  readonly barriers = new Map<string, Place[]>();
  /** The position of each value in the order of insertion into its queue. */
  readonly #order = new Map<string, number>();

  end(session: number): void {
    for (const [key, entry] of this.keys) if (entry.session === session) this.keys.delete(key);
    for (const lock of this.locks.values()) {
      lock.holders = lock.holders.filter((holder) => holder.session !== session);
      lock.waiters = lock.waiters.filter((waiter) => waiter.session !== session);
      this.grant(lock);
    }
    for (const queue of this.queues.values()) {
      queue.takers = queue.takers.filter((taker) => taker.session !== session);
      this.putBack(queue, isOf(session));
    }
    for (const [name, arrivals] of this.barriers)
      this.barriers.set(
        name,
        arrivals.filter((arrival) => arrival.session !== session),
      );
  }

  /** Grants permits to waiters in order. Tokens are not known yet, so they are 0. */
  grant({ holders, waiters }: { holders: (Holding & { token: number })[]; waiters: Holding[] }): void {
    const held = () => holders.reduce((sum, { permits }) => sum + permits, 0);
    for (let next = waiters[0]; next !== undefined && held() + next.permits <= CAPACITY; next = waiters[0]) {
      holders.push({ ...next, token: 0 });
      waiters.shift();
    }
  }

  enqueue(queue: Queue, value: string): void {
    this.#order.set(value, this.#order.size);
    queue.items.push(value);
    this.serve(queue);
  }

  putBack(queue: Queue, isBack: (taking: Taking) => boolean): void {
    const values = queue.taken.filter(isBack).map(({ value }) => value);
    queue.taken = queue.taken.filter((taking) => !isBack(taking));
    queue.items.unshift(...values.sort((a, b) => (this.#order.get(a) ?? 0) - (this.#order.get(b) ?? 0)));
    this.serve(queue);
  }

  serve({ items, taken, takers }: Queue): void {
    while (items.length > 0 && takers.length > 0)
      taken.push({ value: items.shift() as string, ...(takers.shift() as Place), token: 0 });
  }

  lock(name: string) {
    const known = this.locks.get(name) ?? { holders: [], waiters: [] };
    this.locks.set(name, known);
    return known;
  }

  queue(name: string): Queue {
    const known = this.queues.get(name) ?? { items: [], taken: [], takers: [] };
    this.queues.set(name, known);
    return known;
  }

  /** @returns the expected answer, without tokens and revisions */
  apply(session: number, operation: Operation): string {
    switch (operation.type) {
      case "put":
      case "delete":
        return this.#step(session, operation);
      case "transaction": {
        const succeeded = operation.compare.every(
          (each) => each.type === "value" && this.keys.get(each.key)?.value === each.value,
        );
        const steps = succeeded ? operation.success : operation.failure;
        return `${succeeded} ${steps.map((step) => this.#step(session, step)).join()}`;
      }
      case "acquire": {
        const lock = this.lock(operation.name);
        const place = { session, wait: operation.wait };
        const isMine = isAt(session, operation.wait);
        if (![...lock.holders, ...lock.waiters].some(isMine))
          lock.waiters.push({ ...place, permits: operation.mode === "exclusive" ? CAPACITY : operation.permits });
        this.grant(lock);
        return lock.holders.some(isMine) ? "granted" : "waiting";
      }
      case "release":
      case "withdraw": {
        const lock = this.lock(operation.name);
        const isIt = (holder: Place & { token?: number }): boolean =>
          operation.type === "release"
            ? holder.session === session && holder.token === operation.token
            : isAt(session, operation.wait)(holder);
        const isHeld = lock.holders.some(isIt);
        lock.holders = lock.holders.filter((holder) => !isIt(holder));
        lock.waiters = lock.waiters.filter((waiter) => operation.type === "release" || !isIt(waiter));
        this.grant(lock);
        return operation.type === "release" && !isHeld ? "refused" : "done";
      }
      case "arrive": {
        const arrivals = this.barriers.get(operation.name) ?? [];
        if (!arrivals.some(isAt(session, operation.wait))) arrivals.push({ session, wait: operation.wait });
        this.barriers.set(operation.name, arrivals.length < PARTIES ? arrivals : []);
        return arrivals.length < PARTIES ? `waiting ${PARTIES - arrivals.length}` : "passed";
      }
      case "leave": {
        const arrivals = this.barriers.get(operation.name) ?? [];
        this.barriers.set(
          operation.name,
          arrivals.filter((arrival) => !isAt(session, operation.wait)(arrival)),
        );
        return "done";
      }
      default:
        return this.#applyToQueue(session, operation);
    }
  }

  #applyToQueue(session: number, operation: Operation): string {
    switch (operation.type) {
      case "enqueue":
        this.enqueue(this.queue(operation.name), operation.value);
        return "enqueued";
      case "take": {
        const queue = this.queue(operation.name);
        const isMine = isAt(session, operation.wait);
        if (![...queue.taken, ...queue.takers].some(isMine)) queue.takers.push({ session, wait: operation.wait });
        this.serve(queue);
        const taken = queue.taken.find(isMine);
        return taken === undefined ? `waiting ${queue.takers.findIndex(isMine)}` : `item ${taken.value}`;
      }
      case "stopTaking": {
        const queue = this.queue(operation.name);
        queue.takers = queue.takers.filter((taker) => !isAt(session, operation.wait)(taker));
        this.putBack(queue, isAt(session, operation.wait));
        return "done";
      }
      case "finish":
      case "giveBack": {
        const queue = this.queue(operation.name);
        const isIt = (taking: Taking): boolean => taking.session === session && taking.token === operation.token;
        if (!queue.taken.some(isIt)) return "refused";
        if (operation.type === "giveBack") this.putBack(queue, isIt);
        else queue.taken = queue.taken.filter((taking) => !isIt(taking));
        return "done";
      }
      default:
        throw new Error(`expected an operation that the model knows, got ${operation.type}`);
    }
  }

  #step(session: number, step: Step): string {
    const before = this.keys.get(step.key)?.value ?? "nothing";
    if (step.type === "put") this.keys.set(step.key, { value: step.value, session: step.isLeased ? session : null });
    if (step.type === "delete") this.keys.delete(step.key);
    return before;
  }

  toString(): string {
    const some = <T>(all: Map<string, T>, text: (each: T) => unknown): unknown =>
      [...all].map(([name, each]) => [name, text(each)] as const).sort(([a], [b]) => (a < b ? -1 : 1));
    const places = (all: readonly Place[]) => all.map(({ session, wait }) => [session, wait]);
    return JSON.stringify({
      keys: some(this.keys, ({ value, session }) => [value, session]),
      locks: some(
        nonEmpty(this.locks, ({ holders, waiters }) => holders.length + waiters.length),
        (each) => [
          each.holders.map(({ session, wait, permits }) => [session, wait, permits]),
          each.waiters.map(({ session, wait, permits }) => [session, wait, permits]),
        ],
      ),
      queues: some(
        nonEmpty(this.queues, (each) => each.items.length + each.taken.length + each.takers.length),
        (each) => [
          each.items,
          each.taken.map(({ value, session, wait }) => [value, session, wait]),
          places(each.takers),
        ],
      ),
      barriers: some(
        nonEmpty(this.barriers, (each) => each.length),
        places,
      ),
    });
  }
}

const nonEmpty = <T>(all: Map<string, T>, size: (each: T) => number): Map<string, T> =>
  new Map([...all].filter(([, each]) => size(each) > 0));

/** Returns the state of the replica in the notation of the model. */
function contents({ data }: OneReplica): string {
  const some = <T>(table: Table<T>, text: (each: T) => unknown) =>
    [...entriesOf(table)].map(([name, each]) => [name, text(each)]);
  const places = (all: readonly Place[]) => all.map(({ session, wait }) => [session, wait]);
  const holdings = (all: readonly Holding[]) => all.map(({ session, wait, permits }) => [session, wait, permits]);
  return JSON.stringify({
    keys: valuesOf(data.keyspace.keys).map(({ key, value, lease }) => [
      placeOf(key)?.key,
      [value, sessionOfLease(lease)],
    ]),
    locks: some(data.locks, ({ holders, waiters }) => [holdings(holders), holdings(waiters)]),
    queues: some(data.queues, ({ items, taken, takers }) => [
      items.map(({ value }) => value),
      taken.map(({ value, session, wait }) => [value, session, wait]),
      places(takers),
    ]),
    barriers: some(data.barriers, ({ arrivals }) => places(arrivals)),
  });
}

function answered(result: Result): string {
  switch (result.type) {
    case "stored":
      return result.previous?.value ?? "nothing";
    case "transaction":
      return `${result.succeeded} ${result.results
        .map((each) => (each.type === "stored" ? each.previous?.value : each.entry?.value) ?? "nothing")
        .join()}`;
    case "waiting":
      return `waiting ${result.ahead}`;
    case "item":
      return `item ${result.value}`;
    default:
      return result.type;
  }
}

class ModelRun {
  readonly #draw: Random;
  readonly #replica: OneReplica;
  readonly #model = new Model();
  readonly #sessions: Map<NodeId, number>;
  readonly #last = new Map<NodeId, Operation>();
  #tokens = 0;
  #count = 0;

  constructor(seed: number, machine?: StateMachine) {
    this.#draw = random(seed);
    this.#replica = oneReplica({ maxWaiting: 1_000, maxItems: 1_000 }, {}, machine);
    this.#sessions = new Map(MEMBERS.map((member) => [member, this.#replica.open(member)]));
  }

  /** @returns the violation, or null */
  step(): string | null {
    const [draw, replica, model] = [this.#draw, this.#replica, this.#model];
    this.#count += 1;
    const member = draw.pick(MEMBERS);
    const session = this.#sessions.get(member) as number;
    if (draw.below(25) === 0) {
      replica.end(member);
      model.end(session);
      this.#sessions.set(member, replica.open(member));
      this.#last.delete(member);
      return this.#compared("the end of a session");
    }
    const operation = this.#drawn(session);
    const expected = model.apply(session, operation);
    const result = answered(this.#send(member, operation));
    const isAnswered =
      operation.type === "acquire" && expected === "waiting" ? result.startsWith(expected) : result === expected;
    const what = JSON.stringify(operation);
    return (isAnswered ? null : `${what}: expected the answer ${expected}, got ${result}`) ?? this.#compared(what);
  }

  /** Sends an operation. Sometimes repeats the previous one as well, and sometimes sends this one twice. */
  #send(member: NodeId, operation: Operation): Result {
    const [replica, before] = [this.#replica, this.#last.get(member)];
    const { life = 0, applied = 0 } = sessionOf(replica.data, member) ?? {};
    this.#last.set(member, operation);
    const propose = (first: number, operations: Operation[]) =>
      replica.propose(member, { type: "operations", life, round: 1, acknowledged: 0, first, operations })?.session;
    const again = this.#draw.below(6);
    const session =
      again === 0 && before !== undefined ? propose(applied, [before, operation]) : propose(applied + 1, [operation]);
    const { result } = session?.replies.at(-1) ?? { result: { type: "unknown" } as const };
    if (again === 1) propose(applied + 1, [operation]);
    return result;
  }

  /** Copies the tokens from the replica, and checks that they grow and are unique. */
  #compared(what: string): string | null {
    const [replica, model] = [this.#replica, this.#model];
    const [own, its] = [model.toString(), contents(replica)];
    if (own !== its) return `${what}: expected ${own}, got ${its}`;
    const known: { token: number }[] = [];
    const tokens: number[] = [];
    for (const [name, { holders }] of model.locks) {
      known.push(...holders);
      tokens.push(
        ...(valuesOf(replica.data.locks)[keysOf(replica.data.locks).indexOf(name)]?.holders ?? []).map(
          ({ token }) => token,
        ),
      );
    }
    for (const [name, { taken }] of model.queues) {
      known.push(...taken);
      tokens.push(
        ...(valuesOf(replica.data.queues)[keysOf(replica.data.queues).indexOf(name)]?.taken ?? []).map(
          ({ token }) => token,
        ),
      );
    }
    const fresh = tokens.filter((_token, at) => known[at]?.token === 0);
    if (tokens.some((token, at) => known[at]?.token !== 0 && known[at]?.token !== token))
      return `${what}: a token changed`;
    if (new Set(tokens).size < tokens.length || fresh.some((token) => token <= this.#tokens))
      return `${what}: tokens do not grow`;
    for (const [at, token] of tokens.entries()) (known[at] as { token: number }).token = token;
    this.#tokens = Math.max(this.#tokens, ...fresh);
    return null;
  }

  #drawn(session: number): Operation {
    const [draw, model] = [this.#draw, this.#model];
    const name = draw.pick(NAMES);
    const wait = draw.below(4) === 0 ? this.#knownWait(session, name) : this.#count;
    const value = `v${this.#count}`;
    switch (draw.below(12)) {
      case 0:
      case 1:
        return this.#put(value);
      case 2:
        return { type: "delete", map: "m", key: draw.pick(KEYS) };
      case 3: {
        const [key, entry] = draw.pick([...model.keys, ["x", { value: "v0" }] as const]);
        const compare = [{ type: "value", map: "m", key, value: draw.below(3) === 0 ? "v0" : entry.value }] as const;
        return {
          type: "transaction",
          compare: [...compare],
          success: [this.#put(value), { type: "get", map: "m", key }],
          failure: [{ type: "delete", map: "m", key: draw.pick(KEYS) }],
        };
      }
      case 4:
      case 5: {
        const mode = draw.pick(["exclusive", "shared", "shared"] as const);
        return { type: "acquire", name, wait, mode, permits: 1 + draw.below(3), capacity: CAPACITY, note: "" };
      }
      case 6: {
        const { token } = draw.pick([...model.lock(name).holders, { token: 1 }]);
        return draw.below(3) === 0 ? { type: "withdraw", name, wait } : { type: "release", name, token };
      }
      case 7:
        return { type: "enqueue", name, value };
      case 8:
        return { type: "take", name, wait };
      case 9: {
        const { token } = draw.pick([...model.queue(name).taken, { token: 1 }]);
        return { type: draw.pick(["finish", "giveBack"]), name, token };
      }
      case 10:
        return draw.below(2) === 0 ? { type: "stopTaking", name, wait } : { type: "leave", name, wait };
      default:
        return { type: "arrive", name, wait, parties: PARTIES };
    }
  }

  #put(value: string): Step & { type: "put" } {
    return { type: "put", map: "m", key: this.#draw.pick(KEYS), value, isLeased: this.#draw.below(2) === 0 };
  }

  /** Returns a wait number that the session has used for that name, if there is one. */
  #knownWait(session: number, name: string): number {
    const { holders, waiters } = this.#model.lock(name);
    const { taken, takers } = this.#model.queue(name);
    const all = [...holders, ...waiters, ...taken, ...takers, ...(this.#model.barriers.get(name) ?? [])];
    return this.#draw.pick([...all.filter(isOf(session)).map(({ wait }) => wait), this.#count]);
  }
}

/** @returns the violation, or null */
export function modelRun(seed: number, steps: number, machine?: StateMachine): string | null {
  const run = new ModelRun(seed, machine);
  for (let step = 1; step <= steps; step++) {
    const wrong = run.step();
    if (wrong !== null) return `step ${step}: ${wrong}`;
  }
  return null;
}
