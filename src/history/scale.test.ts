/**
 * Checks long histories of a simulated service, and the same histories with one changed answer. Times are printed, not
 * checked.
 */
import { describe, expect, it } from "vitest";
import { type Random, random } from "../core/random.ts";
import { checkLinearizability, type Report } from "./check.ts";
import type { History, Operation, Value } from "./history.ts";
import { type Model, modelNamed } from "./model.ts";

interface Load {
  readonly operations: number;
  readonly clients: number;
  readonly keys: number;
  readonly seed: number;
  /** The fraction of operations whose answer is lost. */
  readonly lost?: number;
}

/** Describes the requests of clients, and the answers of the object. */
interface Service {
  readonly model: string;
  ask(chance: Random, number: number): { f: string; input: Value };
  /** Returns the object's answer. May change the state, an array that the service can use in any way. */
  answer(state: Value[], f: string, input: Value): Value;
}

const store: Service = {
  model: "register",
  ask(chance) {
    const f = chance.pick(["read", "read", "write", "cas"]);
    const [one, other] = [chance.below(5), chance.below(5)];
    return { f, input: f === "read" ? null : f === "write" ? one : [one, other] };
  },
  answer(state, f, input) {
    if (f === "read") return state[0] ?? null;
    if (f === "write") state[0] = input;
    else {
      const [old, next] = input as [Value, Value];
      if ((state[0] ?? null) !== old) return false;
      state[0] = next;
    }
    return true;
  },
};

const jobs: Service = {
  model: "queue",
  ask: (chance, number) => (chance.below(2) === 0 ? { f: "enqueue", input: number } : { f: "dequeue", input: null }),
  answer(state, f, input) {
    if (f === "dequeue") return state.shift() ?? null;
    state.push(input);
    return null;
  },
};

/**
 * Simulates clients that call again some time after their last return. The service acts at a random moment between call
 * and return.
 */
function simulated(service: Service, { operations, clients, keys, seed, lost = 0 }: Load): History {
  const chance = random(seed);
  const idleSince = new Array<number>(clients).fill(0);
  const drafts = Array.from({ length: operations }, (_, number) => {
    const client = number % clients;
    const call = (idleSince[client] ?? 0) + chance.between(0, 5);
    const end = call + chance.between(1, 10);
    idleSince[client] = end;
    const isLost = chance.between(0, 1) < lost;
    return {
      ...service.ask(chance, number),
      client,
      call,
      end,
      isLost,
      acts: chance.between(call, end),
      key: chance.below(keys),
    };
  });
  const states = new Map<number, Value[]>();
  const all = drafts
    .sort((a, b) => a.acts - b.acts)
    .map(({ f, input, client, call, end, isLost, key }, line): Operation => {
      const state = states.get(key) ?? [];
      states.set(key, state);
      const output = isLost && chance.below(2) === 0 ? undefined : service.answer(state, f, input);
      const returned = isLost ? null : end;
      return { process: client, f, key, input, output: isLost ? undefined : output, call, return: returned, line };
    });
  return { operations: all.sort((a, b) => a.call - b.call), remarks: [] };
}

/** Replaces one answer in the middle with a value that the object never had. */
function falsified(history: History, f: string): History {
  const candidates = history.operations.filter((one) => one.f === f && one.return !== null && one.output !== null);
  const victim = candidates[candidates.length >> 1];
  const operations = history.operations.map((one) => (one === victim ? { ...one, output: -1 } : one));
  return { ...history, operations };
}

function timed(label: string, history: History, model: Model): Report {
  const start = performance.now();
  const report = checkLinearizability(history, model, { maxSteps: 1_000_000 });
  const ms = performance.now() - start;
  console.log(
    `${label}: ${report.verdict}, ${ms.toFixed(0)} ms, ${report.steps} steps, ${report.configurations} configurations`,
  );
  return report;
}

/**
 * Name, service, operation to falsify, and load. For one long queue only a valid order is found, since a refutation
 * would have to try every order.
 */
const loads: readonly (readonly [string, Service, string | null, Load])[] = [
  [
    "10,000 operations by 10 clients on 50 registers",
    store,
    "read",
    { operations: 10_000, clients: 10, keys: 50, seed: 1 },
  ],
  [
    "the same, with every twentieth answer lost",
    store,
    "read",
    { operations: 10_000, clients: 10, keys: 50, seed: 2, lost: 0.05 },
  ],
  [
    "10,000 operations by 10 clients on one register",
    store,
    "read",
    { operations: 10_000, clients: 10, keys: 1, seed: 3 },
  ],
  [
    "10,000 operations by 10 clients on 50 queues",
    jobs,
    "dequeue",
    { operations: 10_000, clients: 10, keys: 50, seed: 4 },
  ],
  ["2,000 operations by 10 clients on one queue", jobs, null, { operations: 2_000, clients: 10, keys: 1, seed: 5 }],
];

describe("long histories", () => {
  it.each(loads)("%s", (label, service, falsify, load) => {
    const model = modelNamed(service.model);
    const history = simulated(service, load);
    expect(timed(label, history, model).verdict).toBe("holds");
    if (falsify !== null)
      expect(timed(`${label}, one answer wrong`, falsified(history, falsify), model).verdict).toBe("violated");
  });
});
