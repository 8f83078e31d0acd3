/**
 * Compares the checker with brute force. Brute force tries every order that real time allows, on all objects together,
 * without a cache, partitions or any other optimization.
 *
 * @module-tag long
 */
import { describe, expect, it } from "vitest";
import { type Random, random } from "../core/random.ts";
import { checkLinearizability, type Effect, type Finding } from "./check.ts";
import type { History, Operation, Value } from "./history.ts";
import { type Model, modelNamed, modelNames } from "./model.ts";

const EACH = 4_000;
const EACH_OF_MANY = 20_000;

/**
 * The definition of linearizability: there is an order of all returned operations and some pending ones that respects
 * real time and the model.
 */
function isLinearizable({ operations }: History, model: Model): boolean {
  const placed = new Set<Operation>();
  const states = new Map<Value | undefined, unknown>();
  const mayBeNext = (one: Operation): boolean =>
    !operations.some((other) => !placed.has(other) && other.return !== null && other.return < one.call);
  function canBeCompleted(): boolean {
    if (operations.every((one) => placed.has(one) || one.return === null)) return true;
    return operations.some((one) => {
      if (placed.has(one) || !mayBeNext(one)) return false;
      const before = states.has(one.key) ? states.get(one.key) : model.init;
      const after = model.calls[one.f]?.step(before, one) ?? null;
      if (after === null) return false;
      placed.add(one);
      states.set(one.key, after);
      const completed = canBeCompleted();
      placed.delete(one);
      states.set(one.key, before);
      return completed;
    });
  }
  return canBeCompleted();
}

/** Finds errors in the checker's evidence, independently of the checker. */
function evidenceProblem(finding: Finding, model: Model): string[] {
  const { operations } = finding;
  if (finding.verdict === "holds") return inOrder(finding.linearization, operations, model);
  if (finding.verdict === "unknown") return ["unknown without a limit"];
  const { culprit, longest } = finding;
  const { return: until } = culprit;
  if (until === null) return ["the culprit never returned"];
  const upTo = (isReturned: (time: number) => boolean): History => ({
    operations: operations.map((one) =>
      one.return !== null && isReturned(one.return) ? one : { ...one, return: null },
    ),
    remarks: [],
  });
  return [
    ...(isLinearizable(
      upTo((time) => time <= until),
      model,
    )
      ? ["linearizable up to the culprit"]
      : []),
    ...(isLinearizable(
      upTo((time) => time < until),
      model,
    )
      ? []
      : ["not linearizable before the culprit"]),
    ...longest.flatMap((effects) => inOrder(effects, upTo((time) => time < until).operations, model)),
    ...longest.flatMap((effects) =>
      effects.some(({ operation }) => operation === culprit) ? ["the culprit placed"] : [],
    ),
  ];
}

/**
 * Returns the problems of an order of effects: violations of real time or the model, and missing required operations.
 */
function inOrder(effects: readonly Effect[], operations: readonly Operation[], model: Model): string[] {
  const problems: string[] = [];
  let state: unknown = model.init;
  for (const [at, { operation, state: shown }] of effects.entries()) {
    const isLate = effects.slice(at + 1).some((later) => (later.operation.return ?? Infinity) < operation.call);
    if (isLate) problems.push("real time is not respected");
    state = model.calls[operation.f]?.step(state, operation) ?? null;
    if (state === null) return [...problems, "the model does not allow it"];
    if (model.show(state) !== shown) problems.push("another state is shown");
  }
  const placed = new Set(effects.map(({ operation }) => operation.line));
  if (placed.size !== effects.length) problems.push("placed twice");
  const missing = operations.some((one) => one.return !== null && !placed.has(one.line));
  return missing ? [...problems, "an operation is missing"] : problems;
}

interface Vocabulary {
  readonly calls: readonly string[];
  input(f: string, chance: Random): Value;
  output(f: string, input: Value, chance: Random): Value;
}

const small = (chance: Random): number => chance.below(3);
const pair = (chance: Random): Value => [small(chance), small(chance)];
const acknowledgement = (chance: Random): Value => (chance.below(4) === 0 ? false : null);

const vocabularies: Readonly<Record<string, Vocabulary>> = {
  register: {
    calls: ["read", "read", "write", "write", "cas"],
    input: (f, chance) => (f === "write" ? small(chance) : f === "cas" ? pair(chance) : null),
    output: (f, _input, chance) => (f === "read" ? small(chance) : f === "cas" ? acknowledgement(chance) : null),
  },
  map: {
    calls: ["get", "get", "put", "put", "delete", "cas"],
    input: (f, chance) => (f === "put" ? small(chance) : f === "cas" ? pair(chance) : null),
    output: (f, _input, chance) =>
      f === "get" ? chance.pick([null, 0, 1, 2]) : f === "put" ? null : acknowledgement(chance),
  },
  queue: {
    calls: ["enqueue", "dequeue"],
    input: (f, chance) => (f === "enqueue" ? small(chance) : null),
    output: (f, _input, chance) => (f === "enqueue" ? null : chance.pick([null, 0, 1, 2])),
  },
  lock: {
    calls: ["acquire", "release"],
    input: () => null,
    output: (f, _input, chance) => (f === "release" ? acknowledgement(chance) : chance.pick([null, false, 1, 2, 3])),
  },
  counter: {
    calls: ["add", "add", "read"],
    input: (f, chance) => (f === "add" ? 1 + chance.below(2) : null),
    output: (f, _input, chance) => (f === "read" || chance.below(3) === 0 ? chance.below(5) : null),
  },
};

/**
 * Draws up to six operations at coarse times. Half of the histories come from a run of the model, with at most one
 * changed word.
 */
function randomHistory(model: Model, words: Vocabulary, chance: Random): History {
  const keys: (string | undefined)[] = model.needsKey || chance.below(3) === 0 ? ["x", "y"] : [undefined];
  const span = 4 + chance.below(12);
  const drafts = Array.from({ length: 1 + chance.below(6) }, (_, line): Operation => {
    const f = chance.pick(words.calls);
    const input = words.input(f, chance);
    const [call, end] = [chance.below(span), chance.below(span)].sort((a, b) => a - b) as [number, number];
    const isPending = chance.below(6) === 0;
    const output = isPending ? undefined : words.output(f, input, chance);
    const ends = isPending ? null : end;
    return { process: chance.below(3), f, key: chance.pick(keys), input, output, call, return: ends, line };
  });
  const operations = chance.below(4) > 0 ? replay(drafts, model, words, chance) : drafts;
  return { operations: operations.sort((a, b) => a.call - b.call), remarks: [] };
}

/** Assigns outputs that fit the order of the calls. One draft may keep its own output. */
function replay(drafts: readonly Operation[], model: Model, words: Vocabulary, chance: Random): Operation[] {
  const spared = chance.below(2 * drafts.length);
  const states = new Map<Value | undefined, unknown>();
  return [...drafts]
    .sort((a, b) => a.call - b.call)
    .map((draft, at) => {
      const before = states.has(draft.key) ? states.get(draft.key) : model.init;
      for (let tries = 0; tries < 8 && draft.return !== null; tries++) {
        const one = { ...draft, output: words.output(draft.f, draft.input, chance) };
        const after = model.calls[one.f]?.step(before, one) ?? null;
        if (after === null) continue;
        states.set(one.key, after);
        return at === spared ? draft : one;
      }
      return draft;
    });
}

describe("the checker agrees with brute force", () => {
  describe.each(modelNames)("on random histories of the model %s", (name) => {
    it.each([EACH])("%i of them", agrees);
    it.each([EACH_OF_MANY])("%i of them", { tags: ["larger"] }, agrees);

    function agrees(histories: number): void {
      const model = modelNamed(name);
      const words = vocabularies[name] as Vocabulary;
      let linearizable = 0;
      for (let seed = 0; seed < histories; seed++) {
        const history = randomHistory(model, words, random(seed).stream(name));
        const expected = isLinearizable(history, model);
        const { verdict, findings } = checkLinearizability(history, model);
        const wrong = findings.flatMap((finding) => evidenceProblem(finding, model));
        if (wrong.length > 0) expect.fail(`seed ${seed}: ${wrong.join(", ")}: ${JSON.stringify(history)}`);
        if (verdict !== (expected ? "holds" : "violated"))
          expect.fail(`seed ${seed}: ${verdict}, but by brute force it is ${expected}: ${JSON.stringify(history)}`);
        if (expected) linearizable += 1;
      }
      const share = linearizable / histories;
      console.log(`${name}: ${(share * 100).toFixed(1)} % linearizable`);
      expect(share).toBeGreaterThan(0.25);
      expect(share).toBeLessThan(0.75);
    }
  });
});
