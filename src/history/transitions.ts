/**
 * Represents a model using integers: states and classes of operations are numbered in the order that they appear, and
 * the model runs once per state and class. Operations belong to the same class if the model cannot distinguish them.
 */
import { canonical } from "../core/plain.ts";
import type { Operation, Value } from "./history.ts";
import type { Model } from "./model.ts";

/** A model as a numbered transition system. */
export interface Transitions {
  /** Returns the class of an operation. */
  classify(operation: Operation): number;
  /** Returns the number of the state afterwards, or −1 if the operation is impossible. State 0 is the initial state. */
  step(state: number, operationClass: number): number;
  /** Returns a short description of the state with this number. */
  show(state: number): string;
}

/** The number of integers per slot. They are the state + 1 (0 marks a free slot), the class, and the target. */
const STRIDE = 3;

/** Assigns numbers to a model's states and operations on demand. */
export function transitions(model: Model): Transitions {
  const classes: Operation[] = [];
  const classNumbers = new Map<string, Map<number, number>>();
  const values = numbering();
  const states: unknown[] = [];
  const shown: string[] = [];
  const numbers = new Map<string, number>();
  let capacity = 64;
  let known = 0;
  let table = new Int32Array(capacity * STRIDE);

  function classify(operation: Operation): number {
    const { f, input, output } = operation;
    const name = model.knowsProcesses === true ? `${f} ${canonical(operation.process)}` : f;
    const numbersOfName = classNumbers.get(name) ?? new Map<number, number>();
    if (numbersOfName.size === 0) classNumbers.set(name, numbersOfName);
    const pair = values(input) * 2 ** 26 + values(output);
    const known = numbersOfName.get(pair);
    if (known !== undefined) return known;
    numbersOfName.set(pair, classes.length);
    return classes.push(operation) - 1;
  }

  function number(state: unknown): number {
    const text = canonical(state);
    const found = numbers.get(text);
    if (found !== undefined) return found;
    numbers.set(text, states.length);
    return states.push(state) - 1;
  }

  function slotFor(state: number, operationClass: number): number {
    let slot = slotHash(state, operationClass) & (capacity - 1);
    for (;;) {
      const at = slot * STRIDE;
      if (table[at] === 0 || (table[at] === state + 1 && table[at + 1] === operationClass)) return at;
      slot = (slot + 1) & (capacity - 1);
    }
  }

  function grow(): void {
    const old = table;
    capacity *= 2;
    table = new Int32Array(capacity * STRIDE);
    for (let at = 0; at < old.length; at += STRIDE) {
      if (old[at] !== 0) table.set(old.subarray(at, at + STRIDE), slotFor((old[at] ?? 0) - 1, old[at + 1] ?? 0));
    }
  }

  function compute(state: number, operationClass: number): number {
    const operation = classes[operationClass] as Operation;
    const after = model.calls[operation.f]?.step(states[state], operation) ?? null;
    const target = after === null ? -1 : number(after);
    known += 1;
    if (known * 2 > capacity) grow();
    const at = slotFor(state, operationClass);
    table[at] = state + 1;
    table[at + 1] = operationClass;
    table[at + 2] = target;
    return target;
  }

  number(model.init);
  return {
    classify,
    step(state, operationClass) {
      const at = slotFor(state, operationClass);
      return table[at] === 0 ? compute(state, operationClass) : (table[at + 2] as number);
    },
    show: (state) => (shown[state] ??= model.show(states[state])),
  };
}

/** Returns a function that gives the same number to equal values, and only to those. */
function numbering(): (value: Value | undefined) => number {
  const simple = new Map<unknown, number>();
  const composed = new Map<string, number>();
  let count = 0;
  function number<T>(numbers: Map<T, number>, name: T): number {
    const known = numbers.get(name);
    if (known !== undefined) return known;
    numbers.set(name, count);
    return count++;
  }
  return (value) =>
    // A Map compares objects by identity and does not distinguish 0 from −0.
    typeof value === "object" || value === 0 ? number(composed, canonical(value)) : number(simple, value);
}

function slotHash(state: number, operationClass: number): number {
  const mixed = Math.imul(state, 0x9e3779b1) ^ Math.imul(operationClass, 0x85ebca77);
  return mixed ^ (mixed >>> 15);
}
